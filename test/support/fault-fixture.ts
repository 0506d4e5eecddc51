/** Preloaded into the program: SIGUSR1 causes an unhandled rejection, SIGUSR2 an uncaught exception. */
process.on("SIGUSR1", () => void Promise.reject(new Error("nobody caught this", { cause: "a rejection" })));
process.on("SIGUSR2", () => {
  throw new Error("nobody caught this", { cause: "an exception" });
});
