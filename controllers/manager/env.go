// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// webhookEnv has the settings that the chart passes in environment variables (PL-11).
type webhookEnv struct {
	port        int
	certDir     string
	service     string
	secret      string
	namespace   string
	agents      string // the namespace of the node agents
	pod         string // "" outside a pod
	host        string
	renewBefore time.Duration
}

// replicaName is the name of this process in statuses and answers: its pod, or the host.
func (e webhookEnv) replicaName() (string, error) {
	if e.pod != "" {
		return e.pod, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("reading the host name: %w", err)
	}
	return host, nil
}

func readEnv(get func(string) string) (webhookEnv, error) {
	or := func(name, fallback string) string {
		if v := get(name); v != "" {
			return v
		}
		return fallback
	}
	e := webhookEnv{
		certDir: or("WEBHOOK_CERT_DIR", "/tmp/kruise-webhook-certs"),
		service: or("SERVICE_NAME", "kruise-webhook-service"), secret: or("SECRET_NAME", "kruise-webhook-certs"),
		namespace: or("POD_NAMESPACE", "kruise-system"), agents: or("DAEMON_NAMESPACE", or("POD_NAMESPACE", "kruise-system")), pod: get("POD_NAME"), host: get("WEBHOOK_HOST"),
	}
	var wrong []error
	var err error
	if e.port, err = strconv.Atoi(or("WEBHOOK_PORT", "9876")); err != nil || e.port < 1 || e.port > 65535 {
		wrong = append(wrong, fmt.Errorf("environment variable WEBHOOK_PORT is %q, want a port from 1 to 65535", get("WEBHOOK_PORT")))
	}
	if e.renewBefore, err = renewBefore(or("CERTS_RENEW_BEFORE", "6m")); err != nil {
		wrong = append(wrong, err)
	}
	return e, errors.Join(wrong...)
}

// checkHost refuses an IP address if the manager makes the certificates itself, since it makes them for names. Another tool may make them for
// addresses.
func (e webhookEnv) checkHost(externalCerts bool) error {
	if net.ParseIP(e.host) == nil || externalCerts {
		return nil
	}
	return fmt.Errorf("environment variable WEBHOOK_HOST is %q, want a host name: certificates are made for names, not for addresses", e.host)
}

// longestRenewBefore leaves a year between one certificate and the next: certificates are valid for
// ten years.
const longestRenewBefore = 9 * 365

// renewBefore reads <n>d, <n>m or <n>y: days, months of 30 days, years of 365.
func renewBefore(s string) (time.Duration, error) {
	unit := map[byte]int{'d': 1, 'm': 30, 'y': 365}
	if len(s) > 1 {
		if days, ok := unit[s[len(s)-1]]; ok {
			if n, err := strconv.Atoi(s[:len(s)-1]); err == nil && n > 0 && n <= longestRenewBefore/days {
				return time.Duration(n*days) * 24 * time.Hour, nil
			}
		}
	}
	return 0, fmt.Errorf("environment variable CERTS_RENEW_BEFORE is %q, want a number of days, months or years such as 30d, 6m or 1y, from 1d to 9y", s)
}
