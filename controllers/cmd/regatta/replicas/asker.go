// SPDX-License-Identifier: Apache-2.0

// Package replicas asks every replica of the manager why something was decided,
// and takes the newest answer. Only the one that leads decides, but which it is
// may change at any time, and a lease would tell that late: so all are asked.
//
// Nothing is created in the cluster for it, and no answer passes through etcd:
// the question goes through a port-forward into the pod, and the answer comes
// back the same way.
package replicas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/explain"
)

// Question is what is asked: about an object, about a request, or about what a
// user was refused.
type Question struct {
	// Kind is Pod or one of kinds.Workloads with its Group; of other objects both are empty, and
	// Resource is what kubectl calls them, such as deployments.apps.
	Group, Kind, Resource, Namespace, Name string
	// Pods asks for the answers of all pods of a workload as well.
	Pods bool
	// Nearest asks for what would have changed the answer.
	Nearest bool
	// Request is the UID of a request for admission, and User who sent some.
	Request, User string
}

func (q Question) String() string {
	switch {
	case q.Request != "":
		return "request " + q.Request
	case q.User != "":
		return "requests of " + q.User
	case q.Namespace == "":
		return cmp.Or(q.Kind, q.Resource) + " " + q.Name
	}
	return fmt.Sprintf("%s %s/%s", cmp.Or(q.Kind, q.Resource), q.Namespace, q.Name)
}

// Asker asks replicas. It keeps the ways to them open until it is closed.
type Asker struct {
	client  kubernetes.Interface
	config  *rest.Config
	flags   Flags
	timeout time.Duration
	now     func() time.Time

	mu     sync.Mutex
	known  map[string]*replica
	listed time.Time
	trust  *authority
}

// timeout is how long a replica may take where the configuration does not say.
const timeout = 10 * time.Second

// relist is how long the list of replicas is taken to be right.
const relist = 10 * time.Second

// New makes an Asker that uses the credentials of a configuration.
func New(config *rest.Config, flags Flags) (*Asker, error) {
	if config.Impersonate.UserName != "" || config.Impersonate.UID != "" || len(config.Impersonate.Groups) > 0 {
		// A manager would answer the one who impersonates, and so mislead.
		return nil, errors.New("--as is not supported: a manager authenticates a caller by the caller's own credentials")
	}
	for _, e := range flags.Endpoints {
		if _, err := parseEndpoint(e); err != nil {
			return nil, err
		}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	a := &Asker{client: client, config: config, flags: flags, timeout: timeout, now: time.Now, known: map[string]*replica{}}
	if config.Timeout > 0 {
		a.timeout = config.Timeout
	}
	return a, nil
}

// Close closes the ways to the replicas.
func (a *Asker) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, r := range a.known {
		r.close()
		delete(a.known, key)
	}
}

// Ask asks all replicas at once and gives the newest answer, and what any of them
// refused: each serves webhooks. Warnings are of replicas that did not answer
// while others did.
func (a *Asker) Ask(ctx context.Context, q Question) (reply explain.Reply, warnings []error, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	asked, err := a.replicas(ctx)
	if err != nil {
		return explain.Reply{}, nil, err
	}
	replies, errs := each(asked, func(r *replica) (explain.Reply, error) { return r.ask(ctx, q) })
	said := a.sort(asked, errs)
	switch {
	case said.answered > 0:
		return merge(replies), append(said.failed, said.refused...), nil
	case len(said.refused) > 0:
		return explain.Reply{}, said.failed, said.refused[0] // the others say the same
	case said.silent > 0:
		return explain.Reply{}, said.failed, &UndecidedError{Question: q, Replicas: said.silent}
	}
	return explain.Reply{}, nil, errors.Join(said.failed...)
}

// each asks all replicas at once.
func each[T any](asked []*replica, ask func(*replica) (T, error)) ([]T, []error) {
	replies, errs := make([]T, len(asked)), make([]error, len(asked))
	var all sync.WaitGroup
	for i, r := range asked {
		all.Go(func() { replies[i], errs[i] = ask(r) })
	}
	all.Wait()
	return replies, errs
}

// outcome is how replicas answered.
type outcome struct {
	answered, silent int
	refused, failed  []error
}

func (a *Asker) sort(asked []*replica, errs []error) outcome {
	var out outcome
	for i, err := range errs {
		var no *RefusedError
		switch {
		case err == nil:
			out.answered++
		case errors.Is(err, errUndecided):
			out.silent++
		case errors.As(err, &no):
			out.refused = append(out.refused, err)
		default:
			out.failed = append(out.failed, fmt.Errorf("asking %s: %w", asked[i].name, err))
		}
	}
	if len(out.failed) > 0 {
		a.mu.Lock()
		a.listed = time.Time{} // one of them may be gone
		a.mu.Unlock()
	}
	return out
}

// merge takes the newest answer about an object, and all refusals, the latest
// first. Where there are only refusals the latest is the answer.
func merge(replies []explain.Reply) explain.Reply {
	var out explain.Reply
	var refusals []explain.Answer
	for _, r := range replies {
		refusals = append(refusals, r.Refusals...)
		switch {
		case r.Answer.Request != nil:
			refusals = append(refusals, r.Answer)
		case r.Answer.Decided.After(out.Answer.Decided):
			out = r
		}
	}
	slices.SortStableFunc(refusals, func(a, b explain.Answer) int { return b.Decided.Compare(a.Decided) })
	if out.Answer.Decided.IsZero() && len(refusals) > 0 {
		out.Answer, refusals = refusals[0], refusals[1:]
	}
	out.Refusals = refusals
	return out
}
