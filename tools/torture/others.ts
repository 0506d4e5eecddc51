/**
 * A caller that asks for status again and again, until its standard input ends; then it prints the slowest answer in ms.
 * Its argument is the port. It prints a line as soon as it has begun.
 */
const url = `http://127.0.0.1:${process.argv[2]}/api/v1/status`;
let isOver = false;
let slowestMs = 0;
void Bun.stdin.text().then(() => (isOver = true));
await fetch(url);
console.log("begun");
while (!isOver) {
  const startedMs = performance.now();
  await (await fetch(url)).text();
  slowestMs = Math.max(slowestMs, performance.now() - startedMs);
}
console.log(slowestMs);

export {};
