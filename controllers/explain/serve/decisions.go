// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/recovery"
)

const (
	defaultLimit = 1000
	// patience is how long a caller may take to read a response.
	patience = time.Minute
)

// serveDecisions sends users the records of this manager, the oldest first, and then those of each
// other manager. If there are more than fit, the latest are sent, and a warning says how many are left
// out.
func (s *Server) serveDecisions(w http.ResponseWriter, req *http.Request) {
	who, ok := s.authorizeUser(w, req, "list", explain.Decisions, "")
	if !ok {
		return
	}
	query, ok := s.readQuery(w, req)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), patience)
	defer cancel()
	streams := s.peerRecords(ctx, w.Header(), req.URL.Query())
	defer func() {
		for _, stream := range streams {
			stream.Close()
		}
	}()
	s.sendRecords(w, req, query, s.users.wholes, who.GetName(), streams...)
}

// servePeerDecisions sends another manager the records of this one.
func (s *Server) servePeerDecisions(w http.ResponseWriter, req *http.Request) {
	if !s.authorizePeer(w, req, explain.ReplicaDecisionsPath) {
		return
	}
	if query, ok := s.readQuery(w, req); ok {
		s.sendRecords(w, req, query, s.managers.wholes, "")
	}
}

// peerRecords returns streams of the records of the other managers, which are read while they are sent.
func (s *Server) peerRecords(ctx context.Context, h http.Header, query url.Values) (out []io.ReadCloser) {
	type told struct {
		lines    io.ReadCloser
		warnings []error
	}
	peers := s.findPeers(ctx, h)
	answers, errs := replicas.GatherReplies(peers, func(r replicas.Replica) (out told, err error) {
		begun, cancel := context.WithCancelCause(ctx)
		late := time.AfterFunc(3*cmp.Or(s.PeerTimeout, peerTimeout), func() {
			_ = recovery.Call("explain", func() error { cancel(context.DeadlineExceeded); return nil }) // it reports what it recovers
		})
		defer late.Stop()
		out.lines, out.warnings, err = r.RecordsAlone(begun, query)
		if cause := context.Cause(begun); err != nil && cause != nil {
			err = cause
		}
		return out, err
	})
	for i, err := range errs {
		if err != nil {
			s.warnAboutPeer(ctx, h, peers[i].Name, err)
			continue
		}
		out = append(out, answers[i].lines)
		for _, warning := range answers[i].warnings {
			replicas.AddWarning(h, warning.Error())
		}
	}
	return out
}

// sendRecords waits for a slot, and sends the records of this manager and then those of the others.
func (s *Server) sendRecords(w http.ResponseWriter, req *http.Request, query record.Query, room *slots, user string, others ...io.ReadCloser) {
	_, turn := s.waitTimes()
	slot, ok := room.takeSlotOf(user, req.Context().Done(), nil, turn)
	if !ok {
		return
	}
	defer slot.leaveSlot()
	lines, omitted, err := s.encodeRecords(req, query)
	if err != nil {
		ctrl.LoggerFrom(req.Context()).Error(err, "Sending records of decisions")
		writeFailure(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, schema.GroupResource{Group: explain.Group, Resource: explain.Decisions}, err.Error())
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // otherwise the server's deadline applies
	slot.startSending(w)
	h := w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	if omitted > 0 {
		replicas.AddWarning(h, fmt.Sprintf("%s remembers %d older decisions that it did not send: ask for less time, one point or one object, or raise the limit", s.Replica, omitted))
	}
	var to io.Writer = w
	if strings.Contains(req.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		zip, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
		defer zip.Close()
		to = zip
	}
	for _, line := range slices.Backward(lines) {
		if _, err := to.Write(line); err != nil {
			return // the caller has closed the connection
		}
	}
	for _, other := range others {
		if _, err := io.Copy(to, other); err != nil {
			ctrl.LoggerFrom(req.Context()).Error(err, "Passing on records of another manager")
			panic(http.ErrAbortHandler) // so that the caller sees that the response is incomplete
		}
	}
}

// encodeRecords encodes the records that a query selects, the latest first.
func (s *Server) encodeRecords(req *http.Request, query record.Query) (lines [][]byte, omitted int, err error) {
	limit := query.Limit
	query.Limit = 0
	found := s.Records.FindRecords(query)
	bytes := 0
	for i, r := range found {
		if req.Context().Err() != nil {
			return nil, 0, req.Context().Err()
		}
		if i == limit {
			return lines, len(found) - i, nil
		}
		line, err := s.Lines.AppendLine(nil, r)
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

// readQuery reads the parameters of a request. If it returns false, it has written a response.
func (s *Server) readQuery(w http.ResponseWriter, req *http.Request) (record.Query, bool) {
	query, err := s.parseQuery(req.URL.Query())
	if err != nil {
		writeFailure(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, schema.GroupResource{Group: explain.Group, Resource: explain.Decisions}, err.Error())
	}
	return query, err == nil
}

// parseQuery reads the parameters. The error names the one that is wrong.
func (s *Server) parseQuery(values url.Values) (record.Query, error) {
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
			q.Since = s.currentTime().Add(-d)
		case "limit":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > explain.MaxDecisions {
				return q, fmt.Errorf("parameter limit is %q, want 1 to %d", value, explain.MaxDecisions)
			}
			q.Limit = n
		case "point":
			if _, ok := catalog.FindPoint(decision.Name(value)); !ok {
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

func (s *Server) currentTime() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}
