package engine

import (
	"strings"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// ruleInfo is what a bundle says about a labelled rule.
type ruleInfo struct {
	ID, Title, Description, Bundle, Place string
}

// ruleInfos finds the annotations that give a rule its id.
func ruleInfos(set bundle.Set) map[string]*ruleInfo {
	out := map[string]*ruleInfo{}
	for _, b := range set {
		for _, m := range b.Modules {
			if path := module.PackagePath(m); out[path] == nil && m.Package != nil {
				out[path] = &ruleInfo{ID: path, Bundle: b.ID(), Place: module.At(m.Package.Location, "").Place()}
			}
			for _, a := range m.Annotations {
				id, ok := a.Labels[module.LabelID].(string)
				if !ok {
					continue
				}
				out[id] = &ruleInfo{
					ID: id, Title: a.Title, Description: strings.TrimSpace(a.Description),
					Bundle: b.ID(), Place: module.At(a.Location, "").Place(),
				}
			}
		}
	}
	return out
}

// cutName splits domain/point.
func cutName(name decision.Name) (domain, point string, ok bool) {
	domain, point, ok = strings.Cut(string(name), "/")
	return domain, point, ok && domain != "" && point != "" && !strings.Contains(point, "/")
}

// ids are the ids among the labels OPA collected, each once.
func ids(labels []map[string]any) []string {
	if len(labels) == 0 {
		return nil
	}
	out := make([]string, 0, len(labels))
next:
	for _, l := range labels {
		id, ok := l[module.LabelID].(string)
		if !ok {
			continue
		}
		for _, o := range out {
			if o == id {
				continue next
			}
		}
		out = append(out, id)
	}
	return out
}
