// The script of the Worker, in Node.
import { parentPort } from "node:worker_threads";

import { answerer } from "./remote.js";

const answer = answerer(response => parentPort!.postMessage(response));
parentPort!.on("message", request => void answer(request));
