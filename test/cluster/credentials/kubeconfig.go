// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns a kubeconfig for one user. The certificate of the
// authority is inside, so that the file can be copied elsewhere.
func Kubeconfig(cluster, server string, authority []byte, user User) *clientcmdapi.Config {
	name := ContextName(cluster)
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: user.Token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return config
}

// ContextName is the name that a cluster has in a kubeconfig.
func ContextName(cluster string) string { return "regatta-" + cluster }

// WriteKubeconfig writes config to a file of its own.
func WriteKubeconfig(path string, config *clientcmdapi.Config) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the kubeconfig directory: %w", err)
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig %s: %w", path, err)
	}
	return nil
}

// Merge adds config to the kubeconfig at path, which may be the caller's own
// and hold other clusters, and makes its context the current one.
func Merge(path string, config *clientcmdapi.Config) error {
	existing, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		existing = clientcmdapi.NewConfig()
	} else if err != nil {
		return fmt.Errorf("reading the kubeconfig %s: %w", path, err)
	}
	for name, cluster := range config.Clusters {
		existing.Clusters[name] = cluster
	}
	for name, user := range config.AuthInfos {
		existing.AuthInfos[name] = user
	}
	for name, context := range config.Contexts {
		existing.Contexts[name] = context
	}
	existing.CurrentContext = config.CurrentContext
	return WriteKubeconfig(path, existing)
}

// Unmerge takes a cluster out of the kubeconfig at path again, and removes the
// file if nothing else is in it.
func Unmerge(path, cluster string) error {
	existing, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the kubeconfig %s: %w", path, err)
	}
	name := ContextName(cluster)
	delete(existing.Clusters, name)
	delete(existing.AuthInfos, name)
	delete(existing.Contexts, name)
	if existing.CurrentContext == name {
		existing.CurrentContext = ""
	}
	if len(existing.Clusters)+len(existing.AuthInfos)+len(existing.Contexts) == 0 {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing the kubeconfig %s: %w", path, err)
		}
		return nil
	}
	return WriteKubeconfig(path, existing)
}
