// SPDX-License-Identifier: Apache-2.0

package containermeta

import runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

// printing is a program that prints a text, and failing one that cannot be run.
func printing(text string) func(string, []string) (*runtimev1.ExecSyncResponse, error) {
	return func(string, []string) (*runtimev1.ExecSyncResponse, error) {
		return &runtimev1.ExecSyncResponse{Stdout: []byte(text)}, nil
	}
}

func failing(why string) func(string, []string) (*runtimev1.ExecSyncResponse, error) {
	return func(string, []string) (*runtimev1.ExecSyncResponse, error) {
		return &runtimev1.ExecSyncResponse{Stderr: []byte(why), ExitCode: 126}, nil
	}
}
