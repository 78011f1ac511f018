<?php
// The route of the document, read from stdin, in Laravel: the responses to user 42 and a visitor.
require 'Illuminate/autoload.php';

use Illuminate\Auth\AuthServiceProvider;
use Illuminate\Auth\GenericUser;
use Illuminate\Config\Repository;
use Illuminate\Events\EventServiceProvider;
use Illuminate\Filesystem\FilesystemServiceProvider;
use Illuminate\Foundation\Application;
use Illuminate\Http\Request;
use Illuminate\Routing\RoutingServiceProvider;
use Illuminate\Support\Facades\Auth;
use Illuminate\Support\Facades\Facade;
use Illuminate\Support\Facades\Route;
use Illuminate\View\ViewServiceProvider;

$app = new Application(sys_get_temp_dir());
$app->instance('config', new Repository([
    'auth' => ['defaults' => ['guard' => 'test'], 'guards' => ['test' => ['driver' => 'test']]],
    'view' => ['paths' => []],
    'services' => ['bellcast' => ['secret' => getenv('PUSH_SECRET')]],
]));
Facade::setFacadeApplication($app);
$app->register(EventServiceProvider::class);
$app->register(RoutingServiceProvider::class);
$app->register(AuthServiceProvider::class);
$app->register(FilesystemServiceProvider::class);
$app->register(ViewServiceProvider::class);
Auth::viaRequest('test', fn ($request) =>
    $request->query('id') ? new GenericUser(['id' => (int) $request->query('id')]) : null);

// As Laravel does for routes/web.php.
class_alias(Route::class, 'Route');
class_alias(Auth::class, 'Auth');
eval(stream_get_contents(STDIN));

$answers = array_map(function ($query) use ($app) {
    $request = Request::create("/push-token$query");
    $app->instance('request', $request);
    Auth::forgetGuards();
    $response = $app['router']->dispatch($request);
    return [
        'status' => $response->getStatusCode(),
        'headers' => array_map(fn ($each) => $each[0], $response->headers->all()),
        'body' => $response->getContent(),
    ];
}, ['?id=42', '']);
echo json_encode($answers);
