// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
)

const (
	// refusalsTold is how many refusals one answer lists, and refusalBytes how many bytes they may have together. The latest is
	// listed whatever its size.
	refusalsTold = 20
	refusalBytes = LargestSingle / 2
	// largestTold is how many bytes the refusals of all managers in one answer may have together. The latest is
	// listed whatever its size.
	largestTold = LargestSingle - 8<<10
	// objectsChecked is about how many objects one question asks the API server whether the caller may get them.
	objectsChecked = 500
	// stalePages is how many pages in a row may have nothing new: new refusals shift the pages, and a manager of an older
	// release returns the same refusals each time.
	stalePages = 3
)

// pages records which refusals the managers have returned.
type pages struct {
	// skip is how many refusals each manager has returned, by its name; failed are the managers that did not answer and
	// are not asked again.
	skip   map[string]int
	failed map[string]bool
}

// Why older refusals are left out.
const (
	tooManyHidden = "you may not get most of the %d objects of the latest; ask about one namespace, or one request"
	tooMuch       = "the answer would have more than %d KiB; ask about one request"
	tooLate       = "it took too long to find out which of them you may know of"
	tooFast       = "managers tell the same ones again, since others come meanwhile or a manager is of an older release; ask about one namespace, or one request"
)

// readableRefusals returns the latest refusals about objects that the caller may get, and how many managers were asked. Managers
// are asked for older refusals until there are enough: otherwise refusals that the caller may not see would hide the others.
// There are enough when no manager can have a later one that it has not returned yet. If the search ends earlier, a warning says
// why.
func (s *Server) readableRefusals(ctx context.Context, h http.Header, who user.Info, q explain.Question) (out []explain.Answer, asked int) {
	limited, cancel := context.WithTimeout(ctx, 3*cmp.Or(s.PeerTimeout, peerTimeout))
	defer cancel()
	told, sieve := pages{skip: map[string]int{}, failed: map[string]bool{}}, sieve{who: who, mayGet: map[string]bool{}, seen: map[uint64]bool{}}
	left := ""
	for stale, enough := 0, false; left == "" && !enough; {
		replies, n := s.askAllReplicas(limited, h, q, told)
		asked, q.Nearest, q.If = max(asked, n), false, nil
		page := refusalsOf(replicas.MergeReplies(replies))
		oldest := map[string]time.Time{} // the oldest one returned by each manager that may have older ones
		stale++
		for i := range page {
			a := &page[i]
			told.skip[a.Replica]++
			oldest[a.Replica] = a.Decided
			may, isNew, ok := s.maySee(limited, &sieve, a)
			if !ok {
				left = fmt.Sprintf(tooManyHidden, objectsChecked)
				break
			}
			if isNew {
				stale = 0
			}
			if may && isNew {
				out = append(out, *a)
			}
		}
		since := time.Time{}
		for _, at := range oldest {
			since = latestOf(since, at)
		}
		slices.SortStableFunc(out, func(a, b explain.Answer) int { return b.Decided.Compare(a.Decided) })
		kept := cutRefusals(out[:min(len(out), refusalsTold)], largestTold)
		tooLong := len(kept) < min(len(out), refusalsTold)
		out = slices.Clip(kept)
		switch {
		case left != "":
		case limited.Err() != nil:
			left = tooLate
		case len(page) == 0:
			enough = true
		case len(out) == refusalsTold && !out[refusalsTold-1].Decided.Before(since):
			enough = true
		case tooLong && !out[len(out)-1].Decided.Before(since):
			left = fmt.Sprintf(tooMuch, largestTold>>10)
		case stale == stalePages:
			left = tooFast
		}
	}
	if left != "" {
		replicas.AddWarning(h, "older refusals are left out: "+left)
	}
	return out, asked
}

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sieve keeps track of the refusals that were returned.
type sieve struct {
	who user.Info
	// mayGet says for each object whether the caller may get it.
	mayGet map[string]bool
	// seen has the hashes of the refusals that were returned: one may be in a second page too, since new refusals
	// shift the pages.
	seen map[uint64]bool
}

// seed makes hashes that a client cannot predict.
var seed = maphash.MakeSeed()

// maySee reports whether the caller may see a refusal, and whether it was not returned before. ok is false if too many objects were
// checked already.
func (s *Server) maySee(ctx context.Context, in *sieve, a *explain.Answer) (may, isNew, ok bool) {
	key := fmt.Sprint(a.Replica, " ", a.Request.UID, " ", a.Request.Name(), " ", a.Subject.Namespace, "/", a.Subject.Name, " ", a.Decided.UnixNano())
	hash := maphash.String(seed, key)
	if in.seen[hash] {
		return false, false, true
	}
	in.seen[hash] = true
	about := schema.GroupResource{Group: a.Request.Group, Resource: a.Request.Resource}
	object := objectAttributes(in.who, about, a.Subject.Namespace, a.Subject.Name)
	name := about.String() + " " + object.Namespace + "/" + object.Name
	may, known := in.mayGet[name]
	if !known {
		if len(in.mayGet) == objectsChecked {
			return false, true, false
		}
		_, may = s.isAllowed(ctx, object)
		in.mayGet[name] = may
	}
	return may, true, true
}

// refusalsOf returns all refusals of a reply, the latest first.
func refusalsOf(r explain.Reply) []explain.Answer {
	if r.Answer.Request == nil {
		return r.Refusals
	}
	return append([]explain.Answer{r.Answer}, r.Refusals...)
}

// cutRefusals leaves out the oldest of refusals that have more than most bytes together.
func cutRefusals(all []explain.Answer, most int) []explain.Answer {
	bytes := 0
	for i := range all {
		text, err := json.Marshal(&all[i])
		if bytes += len(text); err != nil || i > 0 && bytes > most {
			return all[:i]
		}
	}
	return all
}
