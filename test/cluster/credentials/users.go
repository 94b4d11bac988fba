// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/rand"
	"encoding/csv"
	"fmt"
	"os"
	"strings"
)

// A User authenticates with a static token.
type User struct {
	Name   string
	Groups []string
	Token  string
}

// Names of users that people and tests act as. The programs of the cluster
// have users besides, so that the audit log tells their writes apart.
const (
	Admin = "admin"
	// Manager may do everything: it is for a manager that runs as a process
	// on the host, whose writes are to be counted.
	Manager = "kruise-manager"
	// Developer and Tenant may do nothing until a test lets them.
	Developer = "developer"
	Tenant    = "tenant"
)

const masters = "system:masters"

// Users lists the users of a cluster with the given real nodes.
func Users(realNodes ...string) []User {
	users := []User{
		{Name: Admin, Groups: []string{masters}},
		{Name: Manager, Groups: []string{masters}},
		{Name: Developer},
		{Name: Tenant},
		{Name: "kwok", Groups: []string{masters}},
		{Name: "local-volumes", Groups: []string{masters}},
		{Name: "csi-provisioner", Groups: []string{masters}},
		{Name: "csi-resizer", Groups: []string{masters}},
		{Name: "system:kube-controller-manager"},
		{Name: "system:kube-scheduler"},
		{Name: "system:kube-proxy"},
	}
	for _, node := range realNodes {
		users = append(users, User{Name: "system:node:" + node, Groups: []string{"system:nodes"}})
	}
	for i := range users {
		users[i].Token = rand.Text()
	}
	return users
}

// FileName is a user's name without what file names should not contain.
func (u User) FileName() string {
	return strings.ReplaceAll(strings.TrimPrefix(u.Name, "system:"), ":", "-")
}

// WriteTokens writes the API server's token file.
func WriteTokens(path string, users []User) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the token file: %w", err)
	}
	defer file.Close()
	writer := csv.NewWriter(file)
	for _, user := range users {
		record := []string{user.Token, user.Name, "uid-" + user.FileName(), strings.Join(user.Groups, ",")}
		if err := writer.Write(record); err != nil {
			return fmt.Errorf("writing the token of %s: %w", user.Name, err)
		}
	}
	writer.Flush()
	if err := writer.Error(); err != nil {
		return fmt.Errorf("writing the token file: %w", err)
	}
	return nil
}
