// SPDX-License-Identifier: Apache-2.0
// A stream keeps the rows of a page the same as those of the server.

const listeners = new Set();
let isConnected = true;

/** Calls listener with whether the server sends, now and after each change. */
export function onConnection(listener) {
  listeners.add(listener);
  listener(isConnected);
}

function setConnected(value) {
  isConnected = value;
  for (const listener of listeners) listener(value);
}

// The time in milliseconds after which a stream that the browser has given up is opened again.
const retryInterval = 2000;

/**
 * Opens a stream. draw is called with a Map of rows by ID after rows have changed, at most once for each frame of the
 * display; fail is called with a text if there is no such page. The stream is closed while nobody can see the page, since a browser
 * has few connections to one server. Returns a function that closes it.
 */
export function openStream(path, draw, fail) {
  const rows = new Map();
  let source;
  let frame = 0;
  let retry = 0;
  const schedule = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      draw(rows);
    });
  };

  function open() {
    const fresh = new Set(); // the server sends all rows first
    let isComplete = false;
    source = new EventSource(path);
    source.onopen = () => setConnected(true);
    source.onmessage = (event) => {
      const message = JSON.parse(event.data);
      for (const [id, row] of Object.entries(message.set ?? {})) {
        row.id = id;
        rows.set(id, row);
        if (!isComplete) fresh.add(id);
      }
      for (const id of message.remove ?? []) rows.delete(id);
      if (message.complete && !isComplete) {
        isComplete = true;
        for (const id of [...rows.keys()]) if (!fresh.has(id)) rows.delete(id);
      }
      schedule();
    };
    const failed = source;
    source.onerror = async () => {
      failed.close();
      const reason = await findRefusal(path);
      if (source !== failed) return; // the page was closed meanwhile
      if (reason) fail(reason);
      else retry = setTimeout(open, retryInterval);
    };
  }

  function close() {
    source?.close();
    source = undefined;
    clearTimeout(retry);
  }

  function followVisibility() {
    close();
    if (!document.hidden) open();
  }

  document.addEventListener("visibilitychange", followVisibility);
  if (!document.hidden) open();
  return () => {
    document.removeEventListener("visibilitychange", followVisibility);
    close();
    cancelAnimationFrame(frame);
  };
}

// findRefusal returns why there is no such page, or nothing if the server is away or may have it later.
async function findRefusal(path) {
  const stop = new AbortController();
  try {
    const response = await fetch(path, { signal: stop.signal });
    if ([401, 404].includes(response.status)) return await response.text();
    setConnected(response.ok);
  } catch {
    setConnected(false);
  } finally {
    stop.abort();
  }
  return undefined;
}

/** Returns the rows of a type. */
export function rowsOfType(rows, type) {
  return [...rows.values()].filter((row) => row.type === type);
}
