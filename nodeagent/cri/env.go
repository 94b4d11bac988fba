// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// envTimeout is how long the command env may take in a container.
const envTimeout = 3 * time.Second

// ContainerEnv returns the env that a container was started with, by name. containerd and CRI-O report
// it. For other runtimes the command env is run in the container, which may not have it.
func (r *Runtime) ContainerEnv(ctx context.Context, c Container) (map[string]string, error) {
	env, err := r.processEnv(ctx, c)
	if err != nil || env != nil {
		return env, err
	}
	printed, err := r.ExecCommand(ctx, c, []string{"env"}, envTimeout)
	if err != nil {
		return nil, fmt.Errorf("reading the env of container %s: %w", c.Name, err)
	}
	return parseEnv(splitEnv(string(printed))), nil
}

// processEnv returns the env that the runtime reports, nil if it reports none.
func (r *Runtime) processEnv(ctx context.Context, c Container) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	said, err := r.runtimes.ContainerStatus(ctx, &runtimev1.ContainerStatusRequest{ContainerId: c.id, Verbose: true})
	if err != nil {
		return nil, fmt.Errorf("asking for the env of container %s: %w", c.Name, err)
	}
	info := struct {
		RuntimeSpec struct {
			Process *struct {
				Env []string `json:"env"`
			} `json:"process"`
		} `json:"runtimeSpec"`
	}{}
	text, ok := said.GetInfo()["info"]
	if !ok || json.Unmarshal([]byte(text), &info) != nil || info.RuntimeSpec.Process == nil {
		return nil, nil // the info of another runtime has another format
	}
	return parseEnv(info.RuntimeSpec.Process.Env), nil
}

// parseEnv reads pairs of the form NAME=value; the last one of a name counts.
func parseEnv(pairs []string) map[string]string {
	out := map[string]string{}
	for _, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok {
			out[name] = value
		}
	}
	return out
}

// splitEnv splits the output of the command env into pairs. A line that does not begin with a name
// continues the value before it.
func splitEnv(printed string) (pairs []string) {
	begins := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*=`)
	for line := range strings.SplitSeq(strings.TrimSuffix(printed, "\n"), "\n") {
		if len(pairs) == 0 || begins.MatchString(line) {
			pairs = append(pairs, line)
			continue
		}
		pairs[len(pairs)-1] += "\n" + line
	}
	return pairs
}
