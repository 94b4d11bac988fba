// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/credentials"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// auditPolicy records who wrote what, once per request, and no bodies: enough
// to count writes, and small enough for a thousand pods.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

func auditPolicyFile(s *state.State) string { return s.Path("audit-policy.yaml") }

func tokenFile(s *state.State) string { return s.Path("pki", "tokens.csv") }

// WriteFiles makes the certificates, users, kubeconfigs and the audit policy,
// and enters the users' kubeconfigs in the state.
func WriteFiles(s *state.State, now time.Time) error {
	err := credentials.WriteCertificates(s.Path("pki"), now, "127.0.0.1", s.Plan.Host().String(), s.Plan.FirstService().String())
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(pki(s, credentials.AuthorityFile))
	if err != nil {
		return fmt.Errorf("reading the authority: %w", err)
	}
	var nodes []string
	for n := 1; n <= s.Real; n++ {
		nodes = append(nodes, state.RealNode(n))
	}
	users := credentials.Users(nodes...)
	if err := credentials.WriteTokens(tokenFile(s), users); err != nil {
		return err
	}
	server := "https://" + net.JoinHostPort(s.APIServerHost(), strconv.Itoa(s.Ports.APIServer))
	s.Users = map[string]string{}
	for _, user := range users {
		path := s.Path("users", user.FileName()+".kubeconfig")
		if user.Name == credentials.Admin {
			path = s.Kubeconfig()
		}
		if err := credentials.WriteKubeconfig(path, credentials.Kubeconfig(s.Name, server, authority, user)); err != nil {
			return err
		}
		s.Users[user.Name] = path
	}
	if err := os.WriteFile(auditPolicyFile(s), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	return nil
}
