// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	annotation "k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/patch"
	"k8s.io/kubectl/pkg/cmd/scale"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/ptr"
)

// Commands that specs type most. They run in this process, since half of a spec's processor time went to starting
// kubectl otherwise.
var inProcess = map[string]func(cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command{
	"get": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command {
		return get.NewCmdGet("kubectl", f, s)
	},
	"describe": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command {
		return describe.NewCmdDescribe("kubectl", f, s)
	},
	"apply": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command {
		return apply.NewCmdApply("kubectl", f, s)
	},
	"annotate": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command {
		return annotation.NewCmdAnnotate("kubectl", f, s)
	},
	"label": label.NewCmdLabel,
	"patch": patch.NewCmdPatch,
	"scale": scale.NewCmdScale,
}

// kubectlFailed is what a command of kubectl ends with in place of ending the process.
type kubectlFailed struct{ message string }

var endNoProcess = sync.OnceFunc(func() {
	cmdutil.BehaviorOnFatal(func(message string, _ int) { panic(kubectlFailed{message}) })
})

// runsInProcess reports whether runKubectl can run a command: one of inProcess, after flags for the namespace. One
// that watches goes on until its process is killed. One that reads files has to find them from another folder.
func runsInProcess(args []string) bool {
	for len(args) > 2 && args[0] == "-n" {
		args = args[2:]
	}
	if len(args) == 0 || inProcess[args[0]] == nil {
		return false
	}
	return !slices.ContainsFunc(args, func(arg string) bool {
		return arg == "-w" || slices.ContainsFunc([]string{"--watch", "-f", "--filename", "-k", "--kustomize", "--patch-file"}, func(flag string) bool { return strings.HasPrefix(arg, flag) })
	})
}

// applyManifest runs kubectl apply with a manifest as its standard input, which kubectl reads from that of the process.
func applyManifest(kubeconfig, namespace, manifest string) (string, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return "", err
	}
	go func() {
		_, _ = io.WriteString(write, manifest) // it fails if kubectl does not read all of it
		_ = write.Close()
	}()
	stdin.Lock()
	defer stdin.Unlock()
	before := os.Stdin
	os.Stdin = read
	defer func() {
		os.Stdin = before
		_ = read.Close()
	}()
	return runKubectl(kubeconfig, []string{"-n", namespace, "apply", "-f", "-"})
}

// stdin is held while os.Stdin is that of a command.
var stdin sync.Mutex

// runKubectl runs a command of kubectl in this process and returns all that it prints.
func runKubectl(kubeconfig string, args []string) (out string, err error) {
	endNoProcess()
	var printed bytes.Buffer
	defer func() {
		out = printed.String()
		switch failed := recover().(type) {
		case nil:
		case kubectlFailed:
			out, err = out+failed.message+"\n", errors.New("exit status 1")
		default:
			panic(failed)
		}
	}()
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = ptr.To(kubeconfig)
	root := &cobra.Command{Use: "kubectl", SilenceErrors: true, SilenceUsage: true}
	flags.AddFlags(root.PersistentFlags())
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &printed, ErrOut: &printed}
	factory := cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(flags))
	for _, command := range inProcess {
		root.AddCommand(command(factory, streams))
	}
	root.SetArgs(args)
	root.SetOut(&printed)
	root.SetErr(&printed)
	return "", root.Execute()
}
