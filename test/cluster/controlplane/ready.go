// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/regatta-sh/regatta/test/cluster/credentials"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// Client returns a client of the API server, with the administrator's rights
// and no limit of its own.
func Client(s *state.State) (kubernetes.Interface, error) { return ClientAs(s, credentials.Admin) }

// ClientAs is Client with the rights of another user.
func ClientAs(s *state.State, user string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Users[user])
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", user, err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}

// Healthy asks etcd and the API server, once.
func Healthy(ctx context.Context, s *state.State) error {
	if err := etcdHealthy(ctx, s); err != nil {
		return err
	}
	return apiServerHealthy(ctx, s)
}

func etcdHealthy(ctx context.Context, s *state.State) error {
	return Get(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", s.Ports.Etcd))
}

func apiServerHealthy(ctx context.Context, s *state.State) error {
	client, err := Client(s)
	if err != nil {
		return err
	}
	// The body, when it is not ready, is a list of all that is: the log says it better.
	result := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx)
	status := 0
	if result.StatusCode(&status); status == http.StatusInternalServerError {
		return errors.New("the API server is not ready yet")
	}
	if err := result.Error(); err != nil {
		return fmt.Errorf("asking the API server whether it is ready: %w", err)
	}
	return nil
}

// Get returns nil if the URL answers 200.
func Get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	// No proxy: these are programs on this machine.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: it answered %s", url, response.Status)
	}
	return nil
}

// WaitForEtcd returns when etcd answers: an API server that is started sooner
// gives up after twenty seconds on a slow machine.
func WaitForEtcd(ctx context.Context, s *state.State) error {
	return Wait(ctx, 30*time.Second, "etcd", func(ctx context.Context) error { return etcdHealthy(ctx, s) })
}

// WaitForAPIServer returns when the API server is ready to serve.
func WaitForAPIServer(ctx context.Context, s *state.State) error {
	return Wait(ctx, 90*time.Second, "the API server", func(ctx context.Context) error { return apiServerHealthy(ctx, s) })
}

// Wait repeats check until it succeeds, and returns its last error after timeout.
func Wait(ctx context.Context, timeout time.Duration, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		// That the time is up says less than what was wrong before.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
