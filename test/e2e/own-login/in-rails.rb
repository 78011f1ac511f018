# The controller of the document, read from stdin, in Rails: the responses to user 42 and to a
# visitor.
require "action_controller"
require "active_support/core_ext"
require "json"
require "jwt"

User = Struct.new(:id)

class ApplicationController < ActionController::Base
  def current_user = request.get_header("user")
end

eval $stdin.read

answers = [User.new(42), nil].map do |user|
  env = Rack::MockRequest.env_for("/push-token", "user" => user)
  status, headers, body = PushTokensController.action(:show).call(env)
  { status: status, headers: headers.transform_keys(&:downcase), body: body.each.to_a.join }
end
puts JSON.generate(answers)
