// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
)

const (
	// refusalsTold is how many refusals one answer lists, and refusalBytes how many bytes they have together, but for the latest.
	refusalsTold = 20
	refusalBytes = LargestSingle / 2
	// objectsChecked is for how many objects one question asks the API server whether the caller may get them.
	objectsChecked = 500
	// stalePages is how many pages in a row may have nothing new: refusals that come meanwhile move the others on, and a manager
	// of an older release tells the same ones each time.
	stalePages = 3
)

// pages is what managers have told of their refusals.
type pages struct {
	// skip is how many refusals each has told, by its name; failed are those that do not answer and are not asked again.
	skip   map[string]int
	failed map[string]bool
}

// readableRefusals are the latest refusals of objects that the caller may get, and how many managers were asked. Managers are
// asked for older ones until there are enough: else those that the caller may not know of would hide the others.
func (s *Server) readableRefusals(ctx context.Context, h http.Header, who user.Info, q explain.Question) (out []explain.Answer, asked int) {
	limited, cancel := context.WithTimeout(ctx, 3*cmp.Or(s.PeerTimeout, peerTimeout))
	defer cancel()
	told, mayGet, seen := pages{skip: map[string]int{}, failed: map[string]bool{}}, map[string]bool{}, map[string]bool{}
	for stale := 0; stale < stalePages; {
		replies, n := s.askAllReplicas(limited, h, q, told)
		asked, q.Nearest = max(asked, n), false
		page := refusalsOf(replicas.Merge(replies))
		if stale++; len(page) == 0 {
			break
		}
		for i := range page {
			a := &page[i]
			told.skip[a.Replica]++
			key := fmt.Sprint(a.Replica, " ", a.Request.UID, " ", a.Request.Name(), " ", a.Subject.Namespace, "/", a.Subject.Name, " ", a.Decided.UnixNano())
			if seen[key] { // it was told in another page, as other refusals came meanwhile
				continue
			}
			seen[key], stale = true, 0
			about := schema.GroupResource{Group: a.Request.Group, Resource: a.Request.Resource}
			object := object(who, about, a.Subject.Namespace, a.Subject.Name)
			name := about.String() + " " + object.Namespace + "/" + object.Name
			may, known := mayGet[name]
			if !known {
				if len(mayGet) == objectsChecked {
					replicas.AddWarning(h, fmt.Sprintf("older refusals are left out: you may not get most of the %d objects of the latest; ask about one namespace, or one request", objectsChecked))
					return out, asked
				}
				_, may = s.isAllowed(limited, object)
				mayGet[name] = may
			}
			if may {
				out = append(out, *a)
			}
		}
		if len(out) >= refusalsTold {
			break
		}
		if limited.Err() != nil {
			replicas.AddWarning(h, "older refusals are left out: it took too long to find out which of them you may know of")
			break
		}
	}
	slices.SortStableFunc(out, func(a, b explain.Answer) int { return b.Decided.Compare(a.Decided) })
	return out, asked
}

// refusalsOf are all refusals of a reply, the latest first.
func refusalsOf(r explain.Reply) []explain.Answer {
	if r.Answer.Request == nil {
		return r.Refusals
	}
	return append([]explain.Answer{r.Answer}, r.Refusals...)
}

// cutRefusals leaves out the oldest of refusals that are too large together.
func cutRefusals(all []explain.Answer) []explain.Answer {
	bytes := 0
	for i := range all {
		text, err := json.Marshal(&all[i])
		if bytes += len(text); err != nil || i > 0 && bytes > refusalBytes {
			return all[:i]
		}
	}
	return all
}
