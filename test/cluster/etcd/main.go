// SPDX-License-Identifier: Apache-2.0

// Command etcd is the key-value store of the local cluster. The release ships
// its main package under a module path that  cannot name, so this
// one calls the same entry point. It is a module of its own because its
// dependencies clash with the product's.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
