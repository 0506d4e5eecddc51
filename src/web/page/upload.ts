/** The upload of a file, with its progress. */
import type { FileRecord } from "../../client/luxhub.ts";
import { session } from "./session.ts";

/** Uploads a file, and resolves with its record. XMLHttpRequest: fetch does not tell how much was sent. */
export function upload(
  file: File,
  metadata: object,
  onProgress: (part: number) => void = () => {},
): Promise<FileRecord> {
  const { secret = "" } = session.value ?? {};
  const body = new FormData();
  body.append("metadata", JSON.stringify(metadata));
  body.append("file", file);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "api/v1/file/upload");
    request.setRequestHeader("X-Matrix-Secret", secret);
    request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 0 : loaded / total);
    request.onerror = () => reject(new Error("The upload was interrupted."));
    request.onload = () =>
      request.status === 200
        ? resolve(JSON.parse(request.responseText))
        : reject(new Error(detailOf(request.responseText)));
    request.send(body);
  });
}

function detailOf(text: string): string {
  try {
    const { detail }: { detail?: unknown } = Object(JSON.parse(text));
    return String(detail);
  } catch {
    return "The hub rejected the upload.";
  }
}
