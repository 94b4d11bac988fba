// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/controllers/kinds"
)

// peerTimeout is how long another manager may take to answer unless the Server sets another time.
const peerTimeout = 5 * time.Second

// serveExplanation answers users who ask about an object.
func (s *Server) serveExplanation(w http.ResponseWriter, req *http.Request) {
	q := explain.ParseQuestion(req.URL.Query())
	q.Namespace, q.Name, q.Request, q.User, q.Skip = req.PathValue("namespace"), req.PathValue("name"), "", "", 0
	who, ok := s.authorizeUser(w, req, "get", q.APIResource().Resource, q.Name)
	if !ok {
		return
	}
	q, about, ok := resolveQuestion(q)
	if !ok {
		failBadRequest(w)
		return
	}
	if refuseChanges(w, q) {
		return
	}
	get := objectAttributes(who, about, q.Namespace, q.Name)
	if reason, ok := s.isAllowed(req.Context(), get); !ok {
		s.writeForbidden(w, get, reason)
		return
	}
	slot, ok := s.takeSlot(w, req, q, &s.users, who.GetName())
	if !ok {
		return
	}
	defer slot.leaveSlot()
	replies, asked := s.askAllReplicas(req.Context(), w.Header(), q, pages{})
	slot.startSending(w)
	if len(replies) > 0 {
		s.writeReply(w, q, replicas.MergeReplies(replies))
		return
	}
	writeFailure(w, http.StatusNotFound, metav1.StatusReasonNotFound, q.APIResource(),
		fmt.Sprintf("no manager has decided anything about %s (%d asked); one that has just begun to lead comes to it in a moment", q, asked))
}

// serveRefusals reports requests about objects that the caller may get. It does not even reveal that
// there were others.
func (s *Server) serveRefusals(w http.ResponseWriter, req *http.Request) {
	q := explain.ParseQuestion(req.URL.Query())
	q = explain.Question{Namespace: req.PathValue("namespace"), Request: q.Request, User: q.User, Nearest: q.Nearest, If: q.If}
	who, ok := s.authorizeUser(w, req, "list", explain.Refusals, "")
	if !ok {
		return
	}
	if !q.AsksForRefusals() {
		failBadRequest(w)
		return
	}
	if refuseChanges(w, q) {
		return
	}
	slot, ok := s.takeSlot(w, req, q, &s.users, who.GetName())
	if !ok {
		return
	}
	defer slot.leaveSlot()
	found, asked := s.readableRefusals(req.Context(), w.Header(), who, q)
	slot.startSending(w)
	if len(found) == 0 {
		writeFailure(w, http.StatusNotFound, metav1.StatusReasonNotFound, q.APIResource(),
			fmt.Sprintf("no manager remembers that you may know of %s (%d asked); they remember the last 2,000 refusals each, until they are restarted", q, asked))
		return
	}
	s.writeReply(w, q, explain.Reply{Answer: found[0], Refusals: found[1:]})
}

// servePeer sends another manager what this one remembers. The other manager has authorized the user.
func (s *Server) servePeer(w http.ResponseWriter, req *http.Request) {
	if !s.authorizePeer(w, req, explain.ReplicaPath) {
		return
	}
	q := explain.ParseQuestion(req.URL.Query())
	if !q.AsksForRefusals() {
		var ok bool
		if q, _, ok = resolveQuestion(q); !ok {
			failBadRequest(w)
			return
		}
	}
	slot, ok := s.takeSlot(w, req, q, &s.managers, "")
	if !ok {
		return
	}
	defer slot.leaveSlot()
	reply, ok := s.recallAnswer(req.Context(), q)
	slot.startSending(w)
	if !ok {
		writeFailure(w, http.StatusNotFound, metav1.StatusReasonNotFound, q.APIResource(), "this replica has decided nothing about "+q.String())
		return
	}
	s.writeReply(w, q, reply)
}

// refuseChanges reports whether the changed facts of a question are too many or cannot be read. It has written a response then.
func refuseChanges(w http.ResponseWriter, q explain.Question) bool {
	_, err := whatif.ParseChanges(q.If)
	if q.User != "" && len(q.If) > 0 {
		err = errors.New("it is about one object or one request, and not about all requests of a user")
	}
	if err != nil {
		writeFailure(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, schema.GroupResource{Group: explain.Group}, "parameter if: "+err.Error())
	}
	return err != nil
}

func failBadRequest(w http.ResponseWriter) {
	writeFailure(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, schema.GroupResource{Group: explain.Group},
		"want kind (Pod, "+kinds.List("or")+") with its group, or resource, of an object with its namespace; or request or user, of refusals")
}

// writeReply sends the reply, without the oldest refusals if it would be too large with them.
func (s *Server) writeReply(w http.ResponseWriter, q explain.Question, reply explain.Reply) {
	kind := "Explanation"
	switch q.APIResource().Resource {
	case explain.ClusterExplanations:
		kind = "ClusterExplanation"
	case explain.Refusals:
		kind = "Refusal"
	}
	reply.TypeMeta = metav1.TypeMeta{APIVersion: explain.Group + "/" + explain.Version, Kind: kind}
	reply.Metadata = &explain.ReplyMetadata{Namespace: q.Namespace, Name: cmp.Or(q.Name, q.Request)}
	most := LargestSingle
	if q.Pods {
		most = LargestAnswer
	}
	for {
		text, err := json.Marshal(reply)
		switch n := len(reply.Refusals); {
		case err != nil:
			writeFailure(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, q.APIResource(), err.Error())
		case len(text) < most:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(append(text, '\n')) // it fails only if the caller has closed the connection
		case n > 0:
			reply.Refusals = reply.Refusals[:n/2]
			replicas.AddWarning(w.Header(), fmt.Sprintf("%s leaves out %d older refusals: the answer would have more than %d KiB", s.Replica, n-n/2, most>>10))
			continue
		default:
			writeFailure(w, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, q.APIResource(),
				fmt.Sprintf("the answer has more than %d KiB; ask about single pods, not about all of a workload at once", most>>10))
		}
		return
	}
}

// resolveQuestion resolves the kind in a question about an object, and returns its resource.
func resolveQuestion(q explain.Question) (explain.Question, schema.GroupResource, bool) {
	kind := schema.GroupKind{Group: q.Group, Kind: q.Kind}
	about := schema.ParseGroupResource(q.Resource)
	namespaced := kind.Kind != ""
	if kind == (schema.GroupKind{Kind: "Pod"}) || about == (schema.GroupResource{Resource: "pods"}) {
		kind, about, namespaced = schema.GroupKind{Kind: "Pod"}, schema.GroupResource{Resource: "pods"}, true
	} else if w, ok := kinds.FindByKind(kind); ok {
		kind, about = w.GroupKind(), w.GroupResource()
	} else if k, in, ok := kinds.ExplainedKind(about); ok {
		kind, namespaced = k, in
	}
	q.Group, q.Kind, q.Resource = kind.Group, kind.Kind, about.String()
	return q, about, about.Resource != "" && q.Name != "" && (q.Namespace != "" || !namespaced)
}

// recallAnswer returns what this manager remembers about a question that resolveQuestion has resolved.
// If that is only refusals, the latest is the answer.
func (s *Server) recallAnswer(ctx context.Context, q explain.Question) (reply explain.Reply, ok bool) {
	sought := explain.RefusalFilter{UID: q.Request, User: q.User, Resource: q.Resource, Namespace: q.Namespace, Name: q.Name, Skip: q.Skip}
	reply.Refusals = cutRefusals(s.Store.FindRefusals(sought, refusalsTold), refusalBytes)
	switch kind := (schema.GroupKind{Group: q.Group, Kind: q.Kind}); {
	case q.AsksForRefusals():
	case kind == schema.GroupKind{Kind: "Pod"}:
		ok = s.recallPod(&reply, q)
	default:
		if reply.Answer, ok = s.Store.ExplainWorkload(kind, q.Namespace, q.Name); ok && q.Pods {
			reply.Pods, _ = s.Store.PodsOf(kind, q.Namespace, q.Name)
		}
	}
	for i := range reply.Refusals {
		reply.Refusals[i].Replica = s.Replica
	}
	if !ok && len(reply.Refusals) > 0 {
		reply.Answer, reply.Refusals, ok = reply.Refusals[0], reply.Refusals[1:], true
	}
	if !ok {
		return explain.Reply{}, false
	}
	reply.Answer.Replica = s.Replica
	if near := reply.Answer.Near; near != nil && q.Nearest {
		reply.Answer.Nearest = s.findNearest(ctx, near)
	}
	if len(q.If) > 0 {
		reply.Answer.WhatIf = s.decideAgain(ctx, &reply.Answer, q.If)
	}
	return reply, true
}

func (s *Server) recallPod(reply *explain.Reply, q explain.Question) (ok bool) {
	reply.Answer, ok = s.Store.ExplainPod(q.Namespace, q.Name)
	if placed, found := s.Store.ExplainPlacement(q.Namespace, q.Name); found && ok {
		reply.Placed = &placed
	} else if found {
		reply.Answer, ok = placed, true
	}
	reply.Sidecars = s.Store.ExplainSidecars(q.Namespace, q.Name)
	if !ok && len(reply.Sidecars) > 0 {
		reply.Answer, reply.Sidecars, ok = reply.Sidecars[0], reply.Sidecars[1:], true
	}
	reply.Lacks = s.Store.ExplainMissing(q.Namespace, q.Name)
	if !ok && len(reply.Lacks) > 0 {
		reply.Answer, reply.Lacks, ok = reply.Lacks[0], reply.Lacks[1:], true
	}
	return ok
}

// askAllReplicas returns what this manager and its peers remember, and how many of them answered. For each
// peer that did not answer, it adds a warning to the headers. before is how many refusals they have
// returned already.
func (s *Server) askAllReplicas(ctx context.Context, h http.Header, q explain.Question, before pages) (replies []explain.Reply, asked int) {
	limited, cancel := context.WithTimeout(ctx, cmp.Or(s.PeerTimeout, peerTimeout))
	defer cancel()
	peers := slices.DeleteFunc(s.findPeers(limited, h), func(r replicas.Replica) bool { return before.failed[r.Name] })
	type told struct {
		reply    explain.Reply
		warnings []error
	}
	from := func(replica string) explain.Question {
		q := q
		q.Skip = before.skip[replica]
		return q
	}
	answers, errs := replicas.GatherReplies(peers, func(r replicas.Replica) (out told, err error) {
		out.reply, out.warnings, err = r.AskAlone(limited, from(r.Name))
		return out, err
	})
	asked = 1
	if own, ok := s.recallAnswer(ctx, from(s.Replica)); ok {
		replies = append(replies, own)
	}
	for i, err := range errs {
		switch {
		case err == nil:
			replies = append(replies, answers[i].reply)
			asked++
		case errors.Is(err, replicas.ErrUndecided):
			asked++
		default:
			s.warnAboutPeer(ctx, h, peers[i].Name, err)
			if before.failed != nil {
				before.failed[peers[i].Name] = true
			}
		}
	}
	return replies, asked
}

func (s *Server) findPeers(ctx context.Context, h http.Header) []replicas.Replica {
	if s.Peers == nil {
		return nil
	}
	peers, err := s.Peers(ctx)
	if err != nil {
		s.warnAboutPeer(ctx, h, "other managers", err)
	}
	return peers
}

// warnAboutPeer adds a warning that the answer of another manager may be missing. The reason is only
// logged: users must not see addresses.
func (s *Server) warnAboutPeer(ctx context.Context, h http.Header, who string, err error) {
	reason := "the log of " + s.Replica + " has the reason"
	var large *replicas.TooLargeError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		reason = "it took too long"
	case errors.As(err, &large):
		reason = large.Error()
	}
	if ctx.Err() != nil {
		return // the caller has closed the connection
	}
	ctrl.LoggerFrom(ctx).Error(err, "Another manager did not answer why something was decided", "asked", who)
	replicas.AddWarning(h, fmt.Sprintf("asking %s: no answer: %s", strings.TrimSpace(who), reason))
}
