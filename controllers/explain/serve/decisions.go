// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/record"
)

// Bounds of an answer. It is in memory while it is sent, twice at most.
const (
	defaultLimit  = 1000
	largestLimit  = 10_000
	LargestAnswer = 16 << 20
	AnswersAtOnce = 2
	// patience is how long a caller may take to read an answer.
	patience = time.Minute
)

// decisions sends records of this replica, the oldest first. When there are more
// than fit, the latest are sent, and a header says how many are not.
func (s *Server) decisions(w http.ResponseWriter, req *http.Request) {
	who, ok := s.caller(w, req)
	if !ok {
		return
	}
	if reason, ok := s.mayRead(req, who); !ok {
		fail(w, http.StatusForbidden, fmt.Sprintf("%s may not get %s: %s", nameOf(who), explain.DecisionsPath, reason))
		return
	}
	query, err := s.query(req.URL.Query())
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-req.Context().Done():
		return
	}
	lines, omitted, err := s.lines(req, query)
	if err != nil {
		ctrl.LoggerFrom(req.Context()).Error(err, "Sending records of decisions")
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // else it is the one of the server
	h := w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set(explain.OmittedHeader, strconv.Itoa(omitted))
	var to io.Writer = w
	if strings.Contains(req.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		zip, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // it is a level that exists
		defer zip.Close()
		to = zip
	}
	for _, line := range slices.Backward(lines) {
		if _, err := to.Write(line); err != nil {
			return // the caller has gone
		}
	}
}

// lines are the records that a query selects, the latest first.
func (s *Server) lines(req *http.Request, query record.Query) (lines [][]byte, omitted int, err error) {
	limit := query.Limit
	query.Limit = 0
	found := s.Records.Find(query)
	bytes := 0
	for i, r := range found {
		if req.Context().Err() != nil {
			return nil, 0, req.Context().Err()
		}
		if i == limit {
			return lines, len(found) - i, nil
		}
		line, err := s.Lines.Append(nil, r)
		if err != nil {
			return nil, 0, err
		}
		if bytes += len(line); bytes > LargestAnswer {
			return lines, len(found) - i, nil
		}
		lines = append(lines, line)
	}
	return lines, 0, nil
}

// query reads the parameters. The error names the one that is wrong.
func (s *Server) query(values url.Values) (record.Query, error) {
	q := record.Query{Limit: defaultLimit}
	for name, all := range values {
		if len(all) != 1 {
			return q, fmt.Errorf("parameter %s is given %d times, want it once", name, len(all))
		}
		value := all[0]
		switch name {
		case "since":
			d, err := time.ParseDuration(value)
			if err != nil || d <= 0 {
				return q, fmt.Errorf("parameter since is %q, want how long ago, such as 1h", value)
			}
			q.Since = s.now().Add(-d)
		case "limit":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > largestLimit {
				return q, fmt.Errorf("parameter limit is %q, want 1 to %d", value, largestLimit)
			}
			q.Limit = n
		case "point":
			if _, ok := catalog.Find(decision.Name(value)); !ok {
				return q, fmt.Errorf("parameter point is %q, want a decision point such as rollout/plan", value)
			}
			q.Point = decision.Name(value)
		case "namespace":
			q.Subject.Namespace = value
		case "group":
			q.Subject.Group = value
		case "kind":
			q.Subject.Kind = value
		case "name":
			q.Subject.Name = value
		default:
			return q, fmt.Errorf("parameter %s is not known, want since, point, namespace, group, kind, name or limit", name)
		}
	}
	return q, nil
}

// mayRead asks for the path: records are of all namespaces, and of things that
// are no objects, so that no single object stands for them.
func (s *Server) mayRead(req *http.Request, who user.Info) (reason string, ok bool) {
	verdict, reason, err := s.May.Authorize(req.Context(), authorizer.AttributesRecord{User: who, Verb: "get", Path: explain.DecisionsPath})
	return reason, err == nil && verdict == authorizer.DecisionAllow
}

func (s *Server) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}
