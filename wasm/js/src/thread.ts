// The script of the Worker, in a browser.
import { answerer } from "./remote.js";
import type { Request } from "./remote.js";

const answer = answerer(response => postMessage(response));
addEventListener("message", ({ data }: MessageEvent<Request>) => void answer(data));
