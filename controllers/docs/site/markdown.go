// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// markdown reads and renders pages as GitHub does, but for HTML, which becomes text.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(nodeRenderer{}, 100))),
)

// nodeRenderer renders what goldmark would render otherwise.
type nodeRenderer struct{}

// RegisterFuncs is asked by goldmark.
func (r nodeRenderer) RegisterFuncs(register renderer.NodeRendererFuncRegisterer) {
	register.Register(ast.KindHTMLBlock, r.renderHTML)
	register.Register(ast.KindRawHTML, r.renderHTML)
	register.Register(ast.KindCodeBlock, r.renderCode)
	register.Register(ast.KindFencedCodeBlock, r.renderCode)
	register.Register(extensionast.KindTable, r.renderTable)
}

// renderHTML drops comments, and shows other HTML as text.
func (nodeRenderer) renderHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	var text []byte
	before, after := "", ""
	switch n := n.(type) {
	case *ast.RawHTML:
		text = n.Segments.Value(source)
	case *ast.HTMLBlock:
		text = bytes.Clone(n.Lines().Value(source))
		if n.HasClosure() {
			text = append(text, n.ClosureLine.Value(source)...)
		}
		before, after = "<p>", "</p>\n"
	}
	if !isComment(text) {
		_, _ = w.WriteString(before)
		_, _ = w.Write(util.EscapeHTML(text))
		_, _ = w.WriteString(after)
	}
	return ast.WalkSkipChildren, nil
}

func isComment(text []byte) bool {
	text = bytes.TrimSpace(text)
	return bytes.HasPrefix(text, []byte("<!--")) && bytes.Index(text, []byte("-->")) == len(text)-len("-->")
}

// renderCode makes blocks of code that can be scrolled with the keyboard.
func (nodeRenderer) renderCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<pre tabindex="0"><code>`)
		_, _ = w.Write(util.EscapeHTML(n.Lines().Value(source)))
		_, _ = w.WriteString("</code></pre>\n")
	}
	return ast.WalkSkipChildren, nil
}

// renderTable makes tables that can be scrolled beside the text.
func (nodeRenderer) renderTable(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, _ = w.WriteString("</table></div>\n")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<div class="table" tabindex="0"><table`)
	html.RenderAttributes(w, n, extension.TableAttributeFilter)
	_, _ = w.WriteString(">\n")
	return ast.WalkContinue, nil
}
