/**
 * A disk that fails when it is told to, under the store and the files: the two seams of the engines (the COMMIT of
 * store/sqlite/engine.ts, the writes of blobs/disk.ts) with a switch. Everything around them is real.
 */
import type { DiskIo } from "../../src/blobs/disk.ts";
import type { Commit } from "../../src/store/sqlite/engine.ts";

/** As SQLite names what can happen to a COMMIT. */
export type CommitFault = "SQLITE_FULL" | "SQLITE_IOERR_WRITE" | "SQLITE_IOERR_FSYNC";

export class FailingDisk {
  /** What every COMMIT fails with from now on; null: it works. */
  commitFault: CommitFault | null = null;
  /** What every write of a file fails with, as ENOSPC; null: it works. */
  fileFault: "ENOSPC" | "EDQUOT" | "EIO" | null = null;
  /** Commits that were tried, the failed ones too. */
  commits = 0;

  readonly commit: Commit = (commit) => {
    this.commits++;
    if (this.commitFault !== null) throw faultOf(this.commitFault);
    commit();
  };

  readonly io: DiskIo = {
    write: async (file, bytes) => {
      if (this.fileFault !== null) throw faultOf(this.fileFault);
      return (await file.write(bytes)).bytesWritten;
    },
    datasync: (file) => file.datasync(),
  };
}

function faultOf(code: string): Error {
  return Object.assign(new Error(`injected ${code}`), { code });
}
