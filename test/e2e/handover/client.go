// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// migrate has the sidecar of this container take over, and returns when it serves. It comes
// maybe before the sidecar listens.
func migrate(ctx context.Context, own string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var c net.Conn
	for {
		var err error
		if c, err = (&net.Dialer{}).DialContext(ctx, "unix", own); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the sidecar: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("setting a deadline: %w", err)
	}
	if _, err := c.Write([]byte{begin}); err != nil {
		return fmt.Errorf("asking the sidecar to take over: %w", err)
	}
	if _, err := read(c); err != nil {
		return fmt.Errorf("waiting until the sidecar has taken over: %w", err)
	}
	return nil
}

// longestAnswer is how long an answer may take. A handover takes milliseconds, but the processes that take part in it may wait
// for a processor for seconds where many containers start at once.
const longestAnswer = 5 * time.Second

// ask asks the sidecar every 100 ms, by a connection of its own each time, and prints what came of it. An answer
// that takes longer than longestAnswer is a failure.
func ask(ctx context.Context, url string, out io.Writer) error {
	client := &http.Client{Timeout: longestAnswer, Transport: &http.Transport{DisableKeepAlives: true}}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		body, err := get(ctx, client, url)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			fmt.Fprintf(out, "request sidecar server failed: %v\n", err)
		default:
			fmt.Fprintf(out, "request sidecar server success, and response(body=%s)\n", body)
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("making a request: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking the sidecar: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("asking the sidecar: %s", response.Status)
	}
	return string(body), nil
}
