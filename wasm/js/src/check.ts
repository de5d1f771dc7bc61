// What a caller may hand over. The engine judges values; here is judged what
// JSON would bend: types, names that are not known, numbers that are none.

import type { Instant } from "./types.js";

type Rule = (name: string, value: unknown) => void;

/** The options that there are, with what each may be. */
export type Rules<T> = { [K in keyof Required<T>]: Rule };

export function refuse(name: string, value: unknown, want: string): never {
  throw new TypeError(`${name} is ${show(value)}, want ${want}`);
}

function show(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.length > 40 ? value.slice(0, 40) + "…" : value);
    case "number":
    case "boolean":
    case "bigint":
    case "undefined":
      return String(value);
    case "object":
      return value === null ? "null" : Array.isArray(value) ? "an array" : value instanceof Date ? "an invalid Date" : "an object";
    default:
      return `a ${typeof value}`;
  }
}

export const isText: Rule = (name, value) => {
  if (typeof value !== "string") refuse(name, value, "a string");
  if (/\p{Surrogate}/u.test(value)) refuse(name, value, "a text without half a surrogate pair, which is no character");
};

export const isFlag: Rule = (name, value) => {
  if (typeof value !== "boolean") refuse(name, value, "true or false");
};

export const isWhole: Rule = (name, value) => {
  if (!Number.isSafeInteger(value)) refuse(name, value, "a whole number");
};

/** A number of things; what the ABI has as an i32 wraps beyond. */
export const isCount: Rule = (name, value) => {
  if (!Number.isSafeInteger(value) || (value as number) < 0 || (value as number) >= 2 ** 31) refuse(name, value, "a whole number from 0 to 2147483647");
};

export const isMS: Rule = (name, value) => {
  if (!Number.isSafeInteger(value)) refuse(name, value, "whole milliseconds");
};

export const isInstant: Rule = (name, value) => {
  if (!Number.isFinite(value instanceof Date ? value.getTime() : value)) {
    refuse(name, value, "milliseconds since the epoch, or a Date");
  }
};

export const isFunction: Rule = (name, value) => {
  if (typeof value !== "function") refuse(name, value, "a function");
};

export const isSignal: Rule = (name, value) => {
  if (!(value instanceof AbortSignal)) throw new TypeError(`${name} is no AbortSignal`);
};

export const isBytes: Rule = (name, value) => {
  if (!(value instanceof Uint8Array)) refuse(name, value, "a Uint8Array");
};

/** An object with these methods. */
export const has = (...methods: string[]): Rule => (name, value) => {
  for (const method of methods) {
    if (typeof (value as Record<string, unknown> | null)?.[method] !== "function") {
      throw new TypeError(`${name} has no method ${method}, want an object with ${methods.join(", ")}`);
    }
  }
};

export const isOneOf = (...words: string[]): Rule => (name, value) => {
  if (typeof value !== "string" || !words.includes(value)) refuse(name, value, `one of ${words.join(", ")}`);
};

export const isListOf = (rule: Rule): Rule => (name, value) => {
  if (!Array.isArray(value)) refuse(name, value, "an array");
  value.forEach((v, i) => rule(`${name}[${i}]`, v));
};

/**
 * An object of options. One that is not known is refused, and one that is needed
 * and not there; undefined is as good as left out.
 */
export const isOptions = <T>(rules: Rules<T>, ...needed: (keyof T & string)[]): Rule => (name, value) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    refuse(name, value, needed.length > 0 ? `an object with ${needed.join(" and ")}` : "an object");
  }
  for (const [key, v] of Object.entries(value)) {
    if (!Object.hasOwn(rules, key)) {
      throw new TypeError(`${name} has no "${key}", want any of ${Object.keys(rules).join(", ")}`);
    }
    if (v !== undefined) rules[key as keyof T](`${name}.${key}`, v);
  }
  for (const key of needed) {
    if ((value as T)[key] === undefined) throw new TypeError(`${name} has no ${key}, which is needed`);
  }
};

/** Anything; what it is judged by is elsewhere. */
export const isAny: Rule = () => {};

/** The instant in whole milliseconds; a fraction is rounded up. */
export function instantOf(instant: Instant | undefined): number | undefined {
  return instant === undefined ? undefined : Math.ceil(Number(instant));
}
