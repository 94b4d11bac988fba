// SPDX-License-Identifier: Apache-2.0

// Package kubeversion says which versions of Kubernetes Regatta runs on, and what an older version lacks. The manager, the chart's checks and
// the command line use it.
package kubeversion

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// OldestMinor is the oldest minor version of Kubernetes 1 whose API servers have match conditions and CEL in CRDs and policies.
const OldestMinor = 30

// NewestTested is the newest minor version of Kubernetes 1 that Regatta's tests have run on.
const NewestTested = 36

// resizeMinor is the minor version of Kubernetes 1 whose API servers and kubelets resize pods in place by default.
const resizeMinor = 33

// ParseMinor returns the minor version of an API server. Some providers add a plus to it.
func ParseMinor(server *version.Info) (int, error) {
	minor, err := strconv.Atoi(strings.TrimRight(server.Minor, "+"))
	if err != nil || server.Major != "1" {
		return 0, fmt.Errorf("the API server says that it is %q, want a version of Kubernetes 1", server.GitVersion)
	}
	return minor, nil
}

// CheckSupported returns an error for an API server that Regatta does not run on.
func CheckSupported(server *version.Info) error {
	minor, err := ParseMinor(server)
	if err != nil {
		return err
	}
	if minor < OldestMinor {
		return fmt.Errorf("the API server is Kubernetes %s, want 1.%d or newer", server.GitVersion, OldestMinor)
	}
	return nil
}

// ListDegraded lists what does not work fully on an older supported version.
func ListDegraded(minor int) []string {
	var out []string
	if minor < resizeMinor {
		out = append(out, fmt.Sprintf("pods are resized in place from 1.%d on, and with the feature gate InPlacePodVerticalScaling of Kubernetes before; without it updates of resources recreate pods", resizeMinor))
	}
	if minor > NewestTested {
		out = append(out, fmt.Sprintf("1.%d is newer than 1.%d, the newest that was tested", minor, NewestTested))
	}
	return out
}
