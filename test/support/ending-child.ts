// A child of a process that delivers: it ends at once, with a code that no other end has.
process.exit(3)
