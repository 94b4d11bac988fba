// SPDX-License-Identifier: Apache-2.0

// Package managers asks the managers of a cluster why something was decided, through the API
// server, with whatever credentials kubectl would use. A manager that is asked this way asks the other
// managers too. A manager that the API server cannot reach is asked at its own address.
package managers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
)

// Question is what is asked.
type Question = explain.Question

// Asker asks managers.
type Asker struct {
	config  *rest.Config
	flags   Flags
	timeout time.Duration

	mu    sync.Mutex
	known []replicas.Replica // nil before the first request
}

// timeout is how long an answer may take if the configuration sets no timeout.
const timeout = 10 * time.Second

// largest is the largest answer in bytes; a pod takes half a kilobyte.
const largest = 256 << 20

// New makes an Asker that uses the credentials of a configuration.
func New(config *rest.Config, flags Flags) (*Asker, error) {
	if i := config.Impersonate; len(flags.Endpoints) > 0 && (i.UserName != "" || i.UID != "" || len(i.Groups) > 0) {
		// A manager would answer for the impersonating user, and so mislead.
		return nil, errors.New("impersonation does not go with --endpoint: a manager that is asked itself knows a caller by the caller's own credentials")
	}
	for _, e := range flags.Endpoints {
		if _, err := parseEndpoint(e); err != nil {
			return nil, err
		}
	}
	a := &Asker{config: config, flags: flags, timeout: timeout}
	if config.Timeout > 0 {
		a.timeout = config.Timeout
	}
	return a, nil
}

// resolveReplicas returns what is asked: the API server, or the managers at the endpoints.
func (a *Asker) resolveReplicas(ctx context.Context) ([]replicas.Replica, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known != nil {
		return a.known, nil
	}
	if len(a.flags.Endpoints) == 0 {
		config := rest.CopyConfig(a.config)
		config.Timeout = 0 // the context has it
		client, err := replicas.APIServerClient(config)
		if err != nil {
			return nil, err
		}
		a.known = []replicas.Replica{{Name: "the API server", Client: client, Most: largest}}
		return a.known, nil
	}
	trust := authority{}
	if !a.flags.Insecure {
		client, err := kubernetes.NewForConfig(a.config)
		if err != nil {
			return nil, fmt.Errorf("making a client: %w", err)
		}
		trust = findAuthority(ctx, client)
	}
	var found []replicas.Replica
	for _, e := range a.flags.Endpoints {
		r, err := a.newEndpointReplica(e, trust)
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	a.known = found
	return a.known, nil
}

func (a *Asker) newEndpointReplica(text string, trust authority) (replicas.Replica, error) {
	u, err := parseEndpoint(text)
	if err != nil {
		return replicas.Replica{}, err
	}
	check := acceptAnyCertificate
	if !a.flags.Insecure {
		check = trust.newEndpointCheck(u.Hostname())
	}
	to, err := replicas.HTTPClient(a.config, &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{}).DialContext}, check)
	if err != nil {
		return replicas.Replica{}, err
	}
	client, err := replicas.NewClient(&url.URL{Scheme: u.Scheme, Host: u.Host}, to)
	return replicas.Replica{Name: u.Host, Client: client, Most: largest}, err
}

// FetchExplanation asks the managers, and returns the newest answer, with the refusals. Warnings are about
// managers that did not answer while others did.
func (a *Asker) FetchExplanation(ctx context.Context, q Question) (reply explain.Reply, warnings []error, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	asked, err := a.resolveReplicas(ctx)
	if err != nil {
		return explain.Reply{}, nil, err
	}
	type told struct {
		reply    explain.Reply
		warnings []error
	}
	answers, errs := replicas.GatherReplies(asked, func(r replicas.Replica) (out told, err error) {
		out.reply, out.warnings, err = r.FetchExplanation(ctx, q)
		return out, err
	})
	var replies []explain.Reply
	for i, answer := range answers {
		warnings = append(warnings, answer.warnings...)
		if errs[i] == nil {
			replies = append(replies, answer.reply)
		}
	}
	said := a.classifyErrors(asked, errs, q.APIResource().Resource)
	switch {
	case said.answered > 0:
		return replicas.MergeReplies(replies), append(append(warnings, said.failed...), said.refused...), nil
	case len(said.refused) > 0:
		return explain.Reply{}, append(warnings, said.failed...), said.refused[0] // the others say the same
	case said.silent > 0:
		return explain.Reply{}, append(warnings, said.failed...), &UndecidedError{Question: q}
	}
	return explain.Reply{}, warnings, errors.Join(said.failed...)
}

// outcome is how managers answered.
type outcome struct {
	answered, silent int
	refused, failed  []error
}

func (a *Asker) classifyErrors(asked []replicas.Replica, errs []error, resource string) outcome {
	var out outcome
	for i, err := range errs {
		err = a.explainError(asked[i].Name, resource, err)
		var no *RefusedError
		switch {
		case err == nil:
			out.answered++
		case errors.Is(err, replicas.ErrUndecided):
			out.silent++
		case errors.As(err, &no):
			out.refused = append(out.refused, err)
		default:
			out.failed = append(out.failed, fmt.Errorf("asking %s: %w", asked[i].Name, err))
		}
	}
	return out
}
