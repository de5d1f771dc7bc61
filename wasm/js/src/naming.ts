// The engine names its options as Go has them. Here they are named, and
// durations given, as the callers of this package know them.

/** The options that are durations. */
const durations: ReadonlySet<string> = new Set([
  "Visibility", "BaseBackoff", "Expires", "Delay", "Timeout", "StopTimeout", "OnTime", "LeaseTTL", "Window",
]);

/** The arguments that have other names here. */
const others: Record<string, string> = { n: "max", ttl: "forMS", extension: "forMS", delay: "afterMS", jobs: "claims" };

const unitsMS: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/** A text in quotes, which is left as it is; a Go name; a Go duration. */
const parts = /"(?:[^"\\]|\\.)*"|\b[A-Z]\w*(?:\.[A-Z]\w*)*|\b(?:\d+(?:\.\d+)?(?:h|ms|m|s))+\b/g;

/** What a refused option or a limit is said to be, in the names of this package. */
export function inOwnNames(message: string): string {
  return message.replace(/(invalid option|limit exceeded): ([\w.]+)( .*)?/g, (_, kind: string, name: string, rest = "") =>
    `${kind}: ` + (kind === "limit exceeded" ? "limits." : "") + (others[name] ?? own(name)) + own(rest));
}

function own(text: string): string {
  return text.replace(parts, part => {
    if (part.startsWith('"')) return part;
    if (/^\d/.test(part)) return `${durationMS(part)} ms`;
    const words = part.split(".");
    return words.map(w => w[0]!.toLowerCase() + w.slice(1)).join(".") + (durations.has(words.at(-1)!) ? "MS" : "");
  });
}

function durationMS(text: string): number {
  let ms = 0;
  for (const [, n, unit] of text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s)/g)) ms += Number(n) * unitsMS[unit!]!;
  return Math.round(ms);
}
