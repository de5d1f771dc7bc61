/**
 * Calls back when the page or the process may have slept, so that the clock is
 * looked at: a hidden tab's timers are slowed down and frozen. Answers the
 * function that ends it.
 */
export function onWake(call: () => void): () => void {
  const end = new AbortController();
  const on = (target: EventTarget | undefined, event: string) =>
    target?.addEventListener?.(event, call, { signal: end.signal });
  const { document, window } = globalThis as { document?: EventTarget; window?: EventTarget };
  on(document, "visibilitychange");
  on(document, "resume");
  on(window, "pageshow");
  on(window, "online");
  return () => end.abort();
}
