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

/**
 * Opens a stream. draw is called with a Map of rows by ID after rows have changed, at most once for each frame of the
 * display; fail is called with a text if the server refuses the stream. Returns a function that closes it.
 */
export function openStream(path, draw, fail) {
  const rows = new Map();
  let fresh = new Set();
  let frame = 0;
  let isComplete = false;
  const source = new EventSource(path);
  const schedule = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      draw(rows);
    });
  };
  source.onopen = () => {
    fresh = new Set(); // after an interruption the server sends all rows again
    isComplete = false;
    setConnected(true);
  };
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
  source.onerror = async () => {
    if (source.readyState !== EventSource.CLOSED) {
      setConnected(false); // the browser tries again
      return;
    }
    const stop = new AbortController();
    try {
      const response = await fetch(path, { signal: stop.signal });
      if (!response.ok) fail(await response.text());
    } catch {
      setConnected(false);
    } finally {
      stop.abort();
    }
  };
  return () => {
    source.close();
    cancelAnimationFrame(frame);
  };
}

/** Returns the rows of a type. */
export function rowsOfType(rows, type) {
  return [...rows.values()].filter((row) => row.type === type);
}
