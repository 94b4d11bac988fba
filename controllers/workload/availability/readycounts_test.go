// SPDX-License-Identifier: Apache-2.0

package availability_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// countsOfReady are the functions that look at whether pods are ready, and why that is right where others ask whether they are
// available: ready for minReadySeconds, and not in the middle of an update in place. A function that compares the one with the other
// holds pods indefinitely, or lets too many go.
func countsOfReady() map[string]string {
	const shown = "it shows both, each under its name"
	return map[string]string{
		"uniteddeployment/step.go:readyAt":                      "since when a pod is ready, which is compared with when its subset was marked",
		"workload/availability/pod.go:HasReadyCondition":        "it is the question itself",
		"workload/availability/pod.go:IsRunningAndReady":        "it is the question itself",
		"workload/facts/pod.go:podReadiness":                    "it tells ready, and since when, from which available follows",
		"workload/inplace/ready.go:setReady":                    "it writes the condition",
		"workload/rollout/events.go:isRelevantChange":           "which events count",
		"cloneset/scale.go:applyDeletions":                      "ReadyLimit bounds available pods, and is counted of available pods; the name is that of CS-01",
		"cloneset/scale.go:scaleInput":                          "ReadyLimit bounds available pods, and is counted of available pods; the name is that of CS-01",
		"cloneset/status.go:computeStatus":                      shown,
		"containerrecreaterequest/decide.go:buildRestartsInput": "a fact for policies; nothing is counted",
		"containerrecreaterequest/step.go:snapshotStatuses":     "of a container, which has no minReadySeconds",
		"daemonset/scale.go:assessNode":                         "as Kubernetes does in a surge: an old pod goes when the new one is available, or when it is not ready itself",
		"daemonset/status.go:podReadiness":                      shown,
		"daemonset/status.go:computeStatus":                     shown,
		"accounting/judge.go:isProtected":                       "budgets have no minReadySeconds: what they count and what they let go is ready and consistent on both sides",
		"accounting/judge.go:decideTicket":                      "budgets have no minReadySeconds: what they count and what they let go is ready and consistent on both sides",
		"kinds/view.go:ViewUnitedDeployment":                    "the status has no count of available pods, as in OpenKruise",
		"livenessprobe/restart.go:agentOf":                      "of a node agent, which is there or not",
		"persistentpodstate/controller.go:buildPodState":        "one pod is recorded once it is ready, as in OpenKruise; nothing is counted",
		"persistentpodstate/events.go:onPods":                   "one pod is recorded once it is ready, as in OpenKruise; nothing is counted",
		"podprobemarker/podmeta/write.go:BuildInput":            "a fact for policies; nothing is counted",
		"sidecarset/hot.go:isResetDue":                          "a pod that is ready needs the container no more that a hot upgrade replaced; SidecarSets have no minReadySeconds",
		"sidecarset/pods.go:IsAvailable":                        "SidecarSets have no minReadySeconds; consistent is what is needed besides",
		"sidecarterminator/facts.go:buildTerminationInput":      "a fact for policies; nothing is counted",
		"statefulset/scale.go:decideScale":                      "the limit is all that may go: which pods these are was decided by what is available",
		"statefulset/status.go:computeStatus":                   "an update is complete when all pods are ready, as in Kubernetes: both sides count ready pods",
		"uniteddeployment/act.go:raisedUnavailable":             "it raises maxUnavailable by pods that wait for room alone: were it by all that are not available, an update would not wait for minReadySeconds",
		"uniteddeployment/act.go:deleteStuckPods":               "a StatefulSet waits for pods that are not ready for ever, and for minReadySeconds not",
		"uniteddeployment/controller.go:subsetPodPredicate":     "which events count",
		"uniteddeployment/decide.go:buildAllocationInput":       "a fact for policies; nothing is counted",
		"uniteddeployment/explain.go:explainSubset":             shown,
		"uniteddeployment/kinds.go:advancedStatefulSets":        "it reads both",
		"uniteddeployment/kinds.go:cloneSets":                   "it reads both",
		"uniteddeployment/kinds.go:nativeDeployments":           "it reads both",
		"uniteddeployment/kinds.go:statefulSets":                "it reads both",
		"uniteddeployment/places.go:findWaitingSubsets":         "whether pods have to be read that may have found no node: those that are ready have one",
		"uniteddeployment/rooms.go:isReserved":                  "a pod that is ready has room, and stands for itself after unschedulableDuration",
		"uniteddeployment/status.go:countReplicas":              "the status has no count of available pods, as in OpenKruise",
		"uniteddeployment/status.go:updateProgress":             "an update is complete when as many updated pods are ready as there are pods, as in OpenKruise",
		"uniteddeployment/status.go:updatedReady":               "the status has no count of available pods, as in OpenKruise",
		"uniteddeployment/step.go:gatherPods":                   "which kinds have no count of updated pods that are ready in their status",
		"uniteddeployment/step.go:isReady":                      "as the status of a child counts it, beside which it is counted",
		"uniteddeployment/surplus.go:findChildToGiveUp":         "two counts of ready pods are compared: the fewest that serve go",
		"uniteddeployment/surplus.go:replicasToKeep":            "a child with pods that serve stays, though none of them may be available yet; what it stands in for is what is available",
		"workload/availability/pod.go:PodState":                 "budgets have no minReadySeconds",
		"workload/availability/pod.go:IsAvailable":              "budgets have no minReadySeconds",
		"workload/availability/pod.go:IsReady":                  "it is what budgets ask",
		"workload/budget/diff.go:ComputeDiff":                   "ReadyLimit is counted of pods that are not available, and bounds available ones",
		"workload/containerstatus/containerstatus.go:IsReady":   "of a container, which has no minReadySeconds",
		"workload/disruption/disruption.go:planInput":           "facts for policies, each under its name",
		"workload/facts/pod.go:IsAvailable":                     "it is what available means",
		"workload/facts/pod.go:buildPod":                        "it reads it",
		"workload/predownload/predownload.go:prepareJobs":       "minUpdatedReadyPods is of ready pods, as its name says: both sides count these",
		"workload/rollout/evidence.go:podFacts":                 shown,
		"workload/rollout/explain.go:notAvailable":              "it says why a pod is not available",
		"workload/rollout/facts.go:CountPods":                   "it counts both",
		"workload/rollout/move.go:mayUpdate":                    "a budget is asked about pods that it counts, and these are ready",
		"workload/rollout/places.go:holdRefused":                "a budget is asked about pods that it counts, and these are ready",
		"workload/rollout/refresh.go:onlyOpensGates":            "which pods wait for their readiness gate",
		"workload/rollout/refresh.go:nextWrite":                 "which pods become available by waiting",
		"workloadspread/rank.go:compareDeletionOrder":           "the order of pods of a subset, as in Kubernetes; nothing is counted",
	}
}

// withoutCounts are folders whose code counts no pods, or only shows what others count.
var withoutCounts = []string{"api", "certs", "cmd", "explain", "manager", "policybundle", "policyhost", "simulation", "webhook"}

// TestEachCountOfReadyPodsHasAReason keeps the list of functions that ask whether pods are ready: a new one has to say why it does not ask
// whether they are available.
func TestEachCountOfReadyPodsHasAReason(t *testing.T) {
	reasons, root := countsOfReady(), filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(withoutCounts, rel) || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !asksForReady(f) {
				continue
			}
			name := filepath.ToSlash(rel) + ":" + f.Name.Name
			if reasons[name] == "" {
				t.Errorf("%s looks at whether pods are ready: say why it does not ask whether they are available", name)
			}
			delete(reasons, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range reasons {
		t.Errorf("%s does not look at whether pods are ready", name)
	}
}

// asksForReady reports whether a function reads a field or calls a function by which pods are ready.
func asksForReady(f *ast.FuncDecl) (found bool) {
	names := []string{"Ready", "ReadyReplicas", "UpdatedReady", "UpdatedReadyReplicas", "ReadyLimit", "IsRunningAndReady", "HasReadyCondition", "podReadiness", "ready", "PodReady", "updatedReady", "countReady"}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			from, ok := n.X.(*ast.Ident) // IsReady of another package is about containers
			found = found || slices.Contains(names, n.Sel.Name) || ok && from.Name == "availability" && n.Sel.Name == "IsReady"
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.Ident)
			found = found || ok && (called.Name == "ready" || called.Name == "isReady" || called.Name == "IsReady" || called.Name == "isPodReady" || called.Name == "IsRunningAndReady" || called.Name == "HasReadyCondition")
		}
		return !found
	})
	return found
}
