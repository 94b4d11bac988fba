// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"strings"
	"unicode"
)

// secretive are the words, without separators, that the name of a secret contains; "key" alone is too
// common, so it is listed only with another word.
var secretive = [...]string{
	"password", "passwd", "passphrase", "secret", "token", "credential", "authorization", "bearer", "jwt",
	"apikey", "accesskey", "privatekey", "encryptionkey", "signingkey", "sshkey", "masterkey", "sharedkey", "accountkey", "licensekey", "clientkey",
	"connectionstring", "kubeconfig", "dockerconfig", "dockercfg", "lastappliedconfiguration",
}

// short are words that count only as the last one of a name: db-pass, not bypass.
var short = [...]string{"pass", "pwd", "dsn", "pat"}

// references are fields of Kubernetes that only name a Secret.
var references = [...]string{
	"secretName", "secretRef", "secretKeyRef", "imagePullSecrets", "nodePublishSecretRef", "nodeStageSecretRef",
	"controllerPublishSecretRef", "controllerExpandSecretRef", "nodeExpandSecretRef",
	"serviceAccountToken", "automountServiceAccountToken", "tokenExpirationSeconds",
}

// IsSecretName reports whether a name is that of a secret.
func IsSecretName(name string) bool {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
	for _, w := range secretive {
		if strings.Contains(plain, w) {
			return true
		}
	}
	last := strings.ToLower(lastWord(name))
	for _, w := range short {
		if last == w {
			return true
		}
	}
	return false
}

// lastWord is the part after the last separator or the last change to upper case.
func lastWord(name string) string {
	cut, before := 0, ' '
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			cut = i + len(string(r))
		case unicode.IsUpper(r) && unicode.IsLower(before):
			cut = i
		}
		before = r
	}
	return name[cut:]
}

// isReference reports whether a name is that of a reference in Kubernetes.
func isReference(name string) bool {
	for _, r := range references {
		if name == r {
			return true
		}
	}
	return false
}
