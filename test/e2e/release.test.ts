/** What `bun run release` says of the executables that it cannot start, and the image that it describes. */
import { expect, test } from "bun:test";
import { emulatorFor } from "../../tools/release.ts";

test("an executable for musl is not started on a machine without the musl loader, and the release says so", () => {
  const target = `${process.platform}-${process.arch}-musl`;
  expect(emulatorFor(target, () => true)).toEqual([]);
  expect(emulatorFor(target, () => false)).toMatch(
    /^this machine has no musl loader \(\/lib\/ld-musl-\w+\.so\.1\)$/,
  );
  expect(emulatorFor(`${process.platform}-${process.arch}`, () => false)).toEqual([]);
});

test("the image gets one executable: what is copied from the build directory stays in an earlier stage", async () => {
  const dockerfile = await Bun.file(`${import.meta.dir}/../../docs/examples/container/Dockerfile`).text();
  const stages = dockerfile.split(/^FROM /m).slice(1);
  const copied = (stages.at(-1) ?? "").match(/^(?:COPY|ADD) .*$/gm);
  expect(copied).toEqual(["COPY --from=executable /luxhub /usr/local/bin/luxhub"]);
  expect(stages[0]).toStartWith("debian:12-slim AS executable\n");
});
