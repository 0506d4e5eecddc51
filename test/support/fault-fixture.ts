/** Loaded before the program: a fault that nobody catches, at each SIGUSR1 a rejection and at each SIGUSR2 an exception. */
process.on("SIGUSR1", () => void Promise.reject(new Error("nobody caught this", { cause: "a rejection" })));
process.on("SIGUSR2", () => {
  throw new Error("nobody caught this", { cause: "an exception" });
});
