// SPDX-License-Identifier: Apache-2.0

// Package replicas asks managers why something was decided, and merges their answers. Only the
// manager that leads decides, but the leader may change at any time, and its lease shows that late: so
// all managers are asked, and the newest answer counts. The command line asks the API of the managers,
// through the API server, and a manager that is asked there asks the others.
package replicas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// Replica is a manager that can be asked, or the API server in front of all of them.
type Replica struct {
	Name   string
	Client rest.Interface
	// Most is how many bytes an answer to a Question may have.
	Most int64
	// Reading has room for the answers that are read at once; nil for any number.
	Reading chan struct{}
}

// ErrUndecided is the answer of a manager that does not lead, or has not reconciled the object yet.
var ErrUndecided = errors.New("it has decided nothing about it")

// TooLargeError says that an answer was not read to its end.
type TooLargeError struct{ Most int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the answer has more than %d MiB; ask about single pods, not about all of a workload at once", e.Most>>20)
}

// FetchExplanation asks through the API, as a user does. Warnings are those in the headers of the response.
func (r Replica) FetchExplanation(ctx context.Context, q explain.Question) (reply explain.Reply, warnings []error, err error) {
	req := r.Client.Get().AbsPath(explain.APIPath).NamespaceIfScoped(q.Namespace, q.Namespace != "").Resource(q.APIResource().Resource)
	if !q.AsksForRefusals() {
		req = req.Name(q.Name)
	}
	return r.requestExplanation(ctx, req, q.APIValues())
}

// AskAlone asks only for what this manager itself remembers, as another manager does.
func (r Replica) AskAlone(ctx context.Context, q explain.Question) (reply explain.Reply, warnings []error, err error) {
	return r.requestExplanation(ctx, r.Client.Get().AbsPath(explain.ReplicaPath), q.QueryValues())
}

// StreamRecords asks through the API for records of decisions, as lines. The caller closes the stream.
func (r Replica) StreamRecords(ctx context.Context, query url.Values) (lines io.ReadCloser, warnings []error, err error) {
	return streamResponse(ctx, r.Client.Get().AbsPath(explain.APIPath).Resource(explain.Decisions), query)
}

// RecordsAlone asks for the records of this manager alone, as another manager does. The caller closes
// the stream.
func (r Replica) RecordsAlone(ctx context.Context, query url.Values) (lines io.ReadCloser, warnings []error, err error) {
	return streamResponse(ctx, r.Client.Get().AbsPath(explain.ReplicaDecisionsPath), query)
}

func (r Replica) requestExplanation(ctx context.Context, req *rest.Request, params url.Values) (reply explain.Reply, warnings []error, err error) {
	body, warnings, err := streamResponse(ctx, req, params)
	if err != nil {
		return explain.Reply{}, warnings, err
	}
	defer body.Close()
	if r.Reading != nil {
		select {
		case r.Reading <- struct{}{}:
			defer func() { <-r.Reading }()
		case <-ctx.Done():
			return explain.Reply{}, warnings, fmt.Errorf("waiting to read the answer: %w", ctx.Err())
		}
	}
	limited := &io.LimitedReader{R: body, N: r.Most}
	if err := json.NewDecoder(limited).Decode(&reply); err != nil {
		if limited.N <= 0 {
			err = &TooLargeError{r.Most}
		}
		return explain.Reply{}, warnings, fmt.Errorf("reading the answer: %w", err)
	}
	return reply, warnings, nil
}

// streamResponse sends a request. If the manager has no answer, the error is ErrUndecided.
func streamResponse(ctx context.Context, req *rest.Request, params url.Values) (io.ReadCloser, []error, error) {
	for key, values := range params {
		for _, value := range values {
			req = req.Param(key, value)
		}
	}
	told := &warnings{}
	body, err := req.MaxRetries(0).WarningHandler(told).Stream(ctx)
	if err == nil {
		return body, told.list, nil
	}
	var in *url.Error
	if errors.As(err, &in) { // the URL in the error does not help users
		err = in.Err
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Group == explain.Group {
		return nil, told.list, ErrUndecided
	}
	return nil, told.list, err
}

// warnings are the warnings of one response.
type warnings struct{ list []error }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	if code == warningCode && text != "" {
		w.list = append(w.list, errors.New(text))
	}
}

// GatherReplies asks all replicas at once, and returns their answers in the order of the replicas.
func GatherReplies[T any](asked []Replica, ask func(Replica) (T, error)) ([]T, []error) {
	replies, errs := make([]T, len(asked)), make([]error, len(asked))
	var all recovery.WaitGroup
	for i, r := range asked {
		all.Go("explain", func() { replies[i], errs[i] = ask(r) }, func(err error) { errs[i] = err })
	}
	all.Wait()
	return replies, errs
}
