// Bytes and payloads as the requests have them.

import type { Payload } from "./types.js";

const encoder = new TextEncoder();

/** The payload as base64. What JSON does not have is a TypeError. */
export function encodePayload(payload: Payload | undefined): string | undefined {
  if (payload === undefined) return undefined;
  if (payload instanceof Uint8Array) return encodeBase64(payload);
  if (typeof payload === "string") return encodeBase64(encoder.encode(payload));
  let text: string | undefined;
  try {
    text = JSON.stringify(payload);
  } catch (cause) {
    throw new TypeError(`payload is no value that JSON has: ${(cause as Error).message}`, { cause });
  }
  if (text === undefined) {
    throw new TypeError(`payload is a ${typeof payload}, want a Uint8Array, a string or a value that JSON has`);
  }
  return encodeBase64(encoder.encode(text));
}

export function encodeBase64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  }
  return btoa(text);
}

export function decodeBase64(text: string | undefined): Uint8Array {
  return Uint8Array.from(atob(text ?? ""), c => c.charCodeAt(0));
}
