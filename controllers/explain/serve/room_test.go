// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/recovery"
)

func allowAll(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}

// answerTo has a server answer a path to jane.
func answerTo(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	return answerToUser(t, h, "jane", path)
}

func answerToUser(t *testing.T, h http.Handler, user, path string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	req.Header.Set("Authorization", "Bearer "+user)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// However many ask at once, no more answers are in memory than have a slot. The others are refused after a while, with a reason.
func TestAnswersAtOnceAreBounded(t *testing.T) {
	const pod, whole = "kind=Pod&namespace=shop&name=web-1", "kind=CloneSet&namespace=shop&name=web&pods=true"
	peer := func(query string) string { return explain.ReplicaPath + "?" + query }
	for name, tc := range map[string]struct {
		path  string
		most  int
		other string // is answered meanwhile
	}{
		"single ones": {urlOf(pod), SinglesAtOnce, peer(pod)},
		"refusals":    {urlOf("user=bob"), SinglesAtOnce, peer(pod)},
		"wholes":      {urlOf(whole), 1, peer(whole)},
	} {
		t.Run(name, func(t *testing.T) {
			store := explain.NewStore()
			store.PutRound(decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "u"}, one{})
			begun, end := make(chan struct{}), make(chan struct{})
			s := &Server{
				Store: store, Replica: "first", Who: named(), May: authorizer.AuthorizerFunc(allowAll), RoomWait: time.Millisecond,
				Peers: func(context.Context) ([]replicas.Replica, error) { begun <- struct{}{}; <-end; return nil, nil },
			}
			h := s.newHTTPServer(nil).Handler
			var all recovery.WaitGroup
			for i := range tc.most {
				all.Go("test", func() { answerToUser(t, h, fmt.Sprint("user-", i), tc.path) }, func(err error) { t.Error(err) })
				<-begun
			}
			w := answerTo(t, h, tc.path)
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), fmt.Sprintf("first answers %d such questions at once", tc.most)) {
				t.Errorf("one more: %d %s", w.Code, w.Body.String())
			}
			if w := answerTo(t, h, tc.other); w.Code != http.StatusOK {
				t.Errorf("to another manager: %d %s", w.Code, w.Body.String())
			}
			close(end)
			all.Wait()
			go func() { <-begun }()
			if w := answerTo(t, h, urlOf(pod)); w.Code != http.StatusOK {
				t.Errorf("after they ended: %d %s", w.Code, w.Body.String())
			}
		})
	}
}

// A slot that is free is given however late it is: on a busy machine the time may be over before the first look.
func TestAFreeSlotIsGivenThoughTheTimeIsOver(t *testing.T) {
	late := make(chan time.Time)
	close(late)
	s := newSlots(4)
	for range 100 {
		slot, ok := s.takeSlotOf("jane", nil, late, time.Second)
		if !ok {
			t.Fatal("a question was refused while no other one had a slot")
		}
		slot.leaveSlot()
	}
	slot, _ := s.takeSlotOf("jane", nil, late, time.Second)
	if _, ok := s.takeSlotOf("jane", nil, late, time.Second); ok {
		t.Error("a quarter of four slots is one")
	}
	slot.leaveSlot()
	gone := make(chan struct{})
	close(gone)
	for range 100 {
		if _, ok := s.takeSlotOf("jane", gone, nil, time.Second); ok {
			t.Fatal("a caller who has gone took a slot")
		}
	}
	if n := len(s.each) + len(s.all); n != 0 {
		t.Errorf("%d slots and users are left", n)
	}
}

// One user who asks without end keeps no other user waiting: what they ask beyond a quarter of the slots waits for their own.
func TestOneUserDoesNotUseUpAllAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		path string
		most int
		user func(int) string
	}{
		"single ones":                       {urlOf("kind=Pod&namespace=shop&name=web-1"), SinglesAtOnce / 4, func(int) string { return "jane" }},
		"refusals":                          {urlOf("user=bob"), SinglesAtOnce / 4, func(int) string { return "jane" }},
		"service accounts of one namespace": {urlOf("user=bob"), SinglesAtOnce / 4, func(i int) string { return fmt.Sprint("system:serviceaccount:shop:robot-", i) }},
	} {
		t.Run(name, func(t *testing.T) {
			store := explain.NewStore()
			store.PutRound(decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "u"}, one{})
			begun, end := make(chan struct{}, SinglesAtOnce), make(chan struct{})
			s := &Server{
				Store: store, Replica: "first", Who: named(), May: authorizer.AuthorizerFunc(allowAll), RoomWait: time.Millisecond,
				Peers: func(context.Context) ([]replicas.Replica, error) { begun <- struct{}{}; <-end; return nil, nil },
			}
			h := s.newHTTPServer(nil).Handler
			var all recovery.WaitGroup
			for i := range tc.most {
				all.Go("test", func() { answerToUser(t, h, tc.user(i), tc.path) }, func(err error) { t.Error(err) })
				<-begun
			}
			if w := answerToUser(t, h, tc.user(tc.most), tc.path); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), fmt.Sprintf("%d of one user", tc.most)) {
				t.Errorf("one more of the user: %d %s", w.Code, w.Body.String())
			}
			all.Go("test", func() { answerToUser(t, h, "eve", tc.path) }, func(err error) { t.Error(err) })
			<-begun
			close(end)
			all.Wait()
			if n := len(s.users.singles.each); n != 0 {
				t.Errorf("%d users are remembered when none asks", n)
			}
		})
	}
}

// unread is a connection whose client reads nothing: what is written waits until its deadline.
type unread struct {
	*httptest.ResponseRecorder
	begun chan struct{}
	late  chan struct{}
}

func (u unread) Write([]byte) (int, error) {
	u.begun <- struct{}{}
	<-u.late
	return 0, os.ErrDeadlineExceeded
}

// SetWriteDeadline is called by http.ResponseController.
func (u unread) SetWriteDeadline(at time.Time) error {
	if !at.After(time.Now()) {
		close(u.late)
	}
	return nil
}

// One user who does not read an answer keeps no other one from theirs: it is cut off while others wait.
func TestAUserWhoDoesNotReadKeepsNoOtherWaiting(t *testing.T) {
	for name, tc := range map[string]struct {
		path   string
		unread int // users that do not read, each as many as one may have
		each   int
	}{
		"a workload with its pods": {urlOf("group=apps.kruise.io&kind=CloneSet&namespace=shop&name=web&pods=true"), 1, 1},
		"records":                  {recordURL, 1, 1},
		"single ones of all slots": {urlOf("kind=Pod&namespace=shop&name=web-1"), 4, SinglesAtOnce / 4},
	} {
		t.Run(name, func(t *testing.T) {
			store := explain.NewStore()
			store.PutRound(decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "u"}, one{})
			s := &Server{
				Store: store, Replica: "first", Who: named(), May: authorizer.AuthorizerFunc(allowAll), RoomWait: 500 * time.Millisecond,
				Records: recordsOf("first", 3), Lines: record.NewEncoder(),
			}
			h := s.newHTTPServer(nil).Handler
			var all recovery.WaitGroup
			late := make(chan struct{}, tc.unread*tc.each)
			for i := range tc.unread {
				for range tc.each {
					u := unread{httptest.NewRecorder(), make(chan struct{}, 100), make(chan struct{})}
					all.Go("test", func() {
						req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.path, nil)
						req.Header.Set("Authorization", fmt.Sprint("Bearer user-", i))
						h.ServeHTTP(u, req)
						late <- struct{}{}
					}, func(err error) { t.Error(err) })
					<-u.begun
				}
			}
			if w := answerTo(t, h, tc.path); w.Code != http.StatusOK {
				t.Errorf("another user: %d %s", w.Code, w.Body.String())
				return
			}
			<-late
		})
	}
}

// A user who waits for slots of their own has no reason to have others cut off.
func TestAUserWhoWaitsForTheirOwnSlotsCutsNobodyOff(t *testing.T) {
	s := newSlots(8)
	slow, ok := s.takeSlotOf("ann", nil, nil, time.Millisecond)
	if !ok {
		t.Fatal("there is no slot")
	}
	u := unread{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{})}
	slow.startSending(u)
	for range 2 {
		if _, ok := s.takeSlotOf("jane", nil, nil, time.Millisecond); !ok {
			t.Fatal("there is no slot")
		}
	}
	if _, ok := s.takeSlotOf("jane", nil, time.After(50*time.Millisecond), time.Millisecond); ok {
		t.Error("jane has more than a quarter")
	}
	select {
	case <-u.late:
		t.Error("ann is cut off")
	default:
	}
}

// crowd is a round with many pods, and with a large answer about each.
type crowd struct {
	one
	pods, bytes int
}

func (c crowd) CountBytes() int { return 0 }
func (c crowd) ExplainPods() []explain.Answer {
	out := make([]explain.Answer, c.pods)
	for i := range out {
		out[i].Message = strings.Repeat("x", c.bytes)
	}
	return out
}

func (c crowd) ExplainPod(string, string) (explain.Answer, bool) {
	return explain.Answer{Message: strings.Repeat("x", c.bytes)}, true
}

func TestAnAnswerThatIsTooLargeIsNotSent(t *testing.T) {
	for name, tc := range map[string]struct {
		round    crowd
		query    string
		refusals int // of 60 KiB each
		code     int
		want     string
	}{
		"many pods":       {crowd{pods: 100, bytes: LargestAnswer / 200}, "kind=CloneSet&namespace=shop&name=web&pods=true", 0, 200, ""},
		"too many":        {crowd{pods: 100, bytes: LargestAnswer / 99}, "kind=CloneSet&namespace=shop&name=web&pods=true", 0, 413, "more than 8192 KiB; ask about single pods"},
		"one pod":         {crowd{bytes: LargestSingle}, "kind=Pod&namespace=shop&name=web-1", 0, 413, "more than 256 KiB"},
		"some refusals":   {crowd{bytes: 1}, "kind=Pod&namespace=shop&name=web-1", 9, 200, ""},
		"refusals beside": {crowd{bytes: 200 << 10}, "kind=Pod&namespace=shop&name=web-1", 9, 200, "leaves out 1 older refusals"},
	} {
		t.Run(name, func(t *testing.T) {
			store := explain.NewStore()
			store.PutRound(decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "u"}, tc.round)
			for range tc.refusals {
				store.PutRefusal(explain.Answer{
					Subject: decision.Subject{Namespace: "shop", Name: "web-1"}, Message: strings.Repeat("y", 60<<10), Request: &explain.Request{Resource: "pods"},
				})
			}
			s := &Server{Store: store, Replica: "first", Who: named(), May: authorizer.AuthorizerFunc(allowAll)}
			w := answerTo(t, s.newHTTPServer(nil).Handler, urlOf(tc.query))
			if text := w.Body.String() + strings.Join(w.Header().Values("Warning"), "; "); w.Code != tc.code || !strings.Contains(text, tc.want) || w.Body.Len() > LargestAnswer {
				t.Errorf("%d, %d bytes: %.300s", w.Code, w.Body.Len(), text)
			}
			if warned := len(w.Header().Values("Warning")) > 0; warned != strings.Contains(tc.want, "leaves out") {
				t.Errorf("warnings %v", w.Header().Values("Warning"))
			}
		})
	}
}
