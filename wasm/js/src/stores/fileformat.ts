// The files of a state, which are those of Go's package fileengine: its
// format.go and docs/ARCHITECTURE.md describe them.

import { StoreError } from "../errors.js";

const version = 1;
const magics = { log: "tick-log", snapshot: "ticksnap" } as const;
const identityAt = 12, generationAt = 28, sumAt = 36;

/** How many bytes the header of a file has. */
export const headerSize = 40;

/** How many bytes are before a record: its length, what was on disk before it, and two checksums. */
export const frameSize = 20;

export type Kind = keyof typeof magics;

/** What a directory's file of that kind and generation is called. */
export function fileName(kind: Kind, generation: number): string {
  return `${kind}-${String(generation).padStart(8, "0")}`;
}

/** The generation in the name of a file of that kind, or 0. */
export function generationOf(kind: Kind, name: string): number {
  const generation = Number(/^[a-z]+-(\d{8,15})$/.exec(name)?.[1] ?? 0);
  return fileName(kind, generation) === name ? generation : 0;
}

const castagnoli = new Uint32Array(256).map((_, i) => {
  for (let bit = 0; bit < 8; bit++) i = (i >>> 1) ^ (i & 1 ? 0x82f63b78 : 0);
  return i;
});

/** The CRC-32C of bytes behind those of a sum. */
export function checksum(bytes: Uint8Array, sum = 0): number {
  sum = ~sum;
  for (const byte of bytes) sum = castagnoli[(sum ^ byte) & 0xff]! ^ (sum >>> 8);
  return ~sum >>> 0;
}

export function header(kind: Kind, identity: Uint8Array, generation: number): Buffer {
  const b = Buffer.alloc(headerSize);
  b.write(magics[kind], "latin1");
  b.writeUInt32LE(version, 8);
  b.set(identity, identityAt);
  b.writeBigUInt64LE(BigInt(generation), generationAt);
  b.writeUInt32LE(checksum(b.subarray(0, sumAt)), sumAt);
  return b;
}

/** The identity in the header of a file, which is checked. */
export function identityIn(kind: Kind, name: string, b: Buffer): Buffer {
  if (b.length < headerSize) throw damaged(name, b.length, "ends within its header");
  if (b.toString("latin1", 0, 8) !== magics[kind]) throw damaged(name, 0, "does not begin like the file that its name says");
  if (checksum(b.subarray(0, sumAt)) !== b.readUInt32LE(sumAt)) throw damaged(name, sumAt, "header with a wrong checksum");
  const found = b.readUInt32LE(8);
  if (found > version) throw new StoreError("newer", `${name} is of version ${found}, which is newer than this package`);
  if (found !== version) throw damaged(name, 8, "unknown version");
  if (b.readBigUInt64LE(generationAt) !== BigInt(generationOf(kind, name))) throw damaged(name, generationAt, "has another number than its name");
  return b.subarray(identityAt, generationAt);
}

/** The checksum of a header: the sums of frames begin with it. */
export function sumOf(head: Buffer): number {
  return head.readUInt32LE(sumAt);
}

/** A record in its frame, to be written at a place of a log of which so much is on disk. */
export function frame(record: Uint8Array, headerSum: number, at: number, synced: number): Buffer {
  const b = Buffer.alloc(frameSize + record.length);
  b.writeUInt32LE(record.length, 0);
  b.writeBigUInt64LE(BigInt(synced), 4);
  b.writeUInt32LE(checksum(record), 12);
  b.writeUInt32LE(frameSum(b, headerSum, at), 16);
  b.set(record, frameSize);
  return b;
}

function frameSum(b: Buffer, headerSum: number, at: number): number {
  const place = Buffer.alloc(8);
  place.writeBigUInt64LE(BigInt(at));
  return checksum(b.subarray(0, 16), checksum(place, headerSum));
}

/** The record at a place of a log and how much was on disk before it, or why there is no whole one. */
function recordAt(log: Buffer, at: number): { record: Buffer; synced: number } | string {
  if (log.length - at < frameSize) return "ends within the frame of a record";
  const b = log.subarray(at, at + frameSize);
  const synced = Number(b.readBigUInt64LE(4));
  if (synced < headerSize || synced > at || frameSum(b, sumOf(log), at) !== b.readUInt32LE(16)) return "no frame of a record";
  const record = log.subarray(at + frameSize, at + frameSize + b.readUInt32LE(0));
  if (record.length < b.readUInt32LE(0)) return "ends within a record";
  return checksum(record) === b.readUInt32LE(12) ? { record, synced } : "record with a wrong checksum";
}

/**
 * The records of a log, and where they end. What is behind that is what a crash
 * has left, unless a whole record behind it says that it was on disk: then the
 * log was damaged.
 */
export function scan(name: string, log: Buffer): { records: Buffer[]; end: number } {
  const records: Buffer[] = [];
  let end = headerSize;
  for (;;) {
    const found = end < log.length ? recordAt(log, end) : "";
    if (typeof found !== "string") {
      records.push(found.record);
      end += frameSize + found.record.length;
      continue;
    }
    for (let at = end + 1; at <= log.length - frameSize; at++) {
      const later = recordAt(log, at);
      if (typeof later !== "string" && later.synced > end) throw damaged(name, end, `${found}, which was on disk when the records after it were written`);
    }
    return { records, end };
  }
}

export function damaged(name: string, at: number, found: string): StoreError {
  return new StoreError("damaged", `${name} is damaged: at byte ${at}: ${found}; restore a copy of the directory`);
}
