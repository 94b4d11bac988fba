// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A controller that asks policies reconciles what it is asked about when they change: what they held would
// wait for its next event otherwise.
func TestControllersThatAskPoliciesFollowTheirChanges(t *testing.T) {
	begins := regexp.MustCompile(`\.NewController\(mgr, [^\n]*, (\w+(?:\.\w+)*)\)`)
	asks := regexp.MustCompile(`\b(?:\w+\.)*\w+\.Engine\b`)
	// What the webhook of pods decides is asked again for each pod.
	without := []string{"nodeimage", "imagelistpulljob", "launchpriority", "livenessprobe", "podreadiness", "podunavailablebudget", "persistentpodstate", "gatedkinds"}
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	affected, asking := map[string]string{}, map[string]bool{}
	for _, file := range files {
		folder := filepath.Base(filepath.Dir(file))
		if strings.HasSuffix(file, "_test.go") || folder == "reconcile" || folder == "manager" {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range begins.FindAllStringSubmatch(string(source), -1) {
			affected[folder] = match[1]
		}
		asking[folder] = asking[folder] || asks.Match(source)
	}
	if len(affected) < 18 {
		t.Errorf("controllers are made in %d folders: %v", len(affected), affected)
	}
	for folder, requests := range affected {
		follows := requests != "nil"
		if asking[folder] && !follows {
			t.Errorf("%s asks policies, and nothing is reconciled when they change", folder)
		}
		if follows == slices.Contains(without, folder) {
			t.Errorf("%s follows the policies: %t; the list of those that need not says otherwise", folder, follows)
		}
	}
}
