// Preloaded into the service (`node --import`): an error that no handler of the service can see.
process.on("SIGUSR2", () => {
  throw new Error("thrown by a test")
})
