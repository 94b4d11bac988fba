// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"fmt"
	"net/url"

	"github.com/spf13/pflag"
)

// Flags say where the managers are.
type Flags struct {
	// Endpoints are managers that are asked directly, in place of the API server.
	Endpoints []string
	// Insecure accepts any certificate of an endpoint.
	Insecure bool
}

// AddFlags adds the flags.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.Endpoints, "endpoint", nil, "ask the manager at this URL, such as https://localhost:8443, and not through the API server; may be repeated")
	fs.BoolVar(&f.Insecure, "insecure-skip-tls-verify", false, "do not check the certificate of an --endpoint, which is shown your credentials; that of the API server is always checked as kubeconfig says")
}

// parseEndpoint accepts only HTTPS: credentials are sent there.
func parseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || (u.Path != "" && u.Path != "/") || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("--endpoint is %q, want https://HOST:PORT", text)
	}
	return u, nil
}
