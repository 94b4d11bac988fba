// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// Language is one that pages are written in, with the words of the site around them.
type Language struct {
	// Code is that of the lang attribute; Suffix ends the names of its pages.
	Code, Suffix string
	// Name is what the switch calls it, Start how the switch calls its first page.
	Name, Start string
	// Foreign marks a page that there is in English alone.
	Foreign                              string
	Skip, Pages, Contents, Files, Source string
	// Group has the names of the groups of the navigation.
	Group  map[string]string
	Search SearchLabels
}

// SearchLabels are the words of the search; {n} and {m} are numbers.
type SearchLabels struct {
	Label, Loading, None, Some, First, Failed string
}

const (
	groupStart, groupGuides, groupKinds       = "start", "guides", "kinds"
	groupPolicies, groupReference             = "policies", "reference"
	groupDecisions, groupExamples, groupRules = "decisions", "examples", "rules"
)

// english is the language of pages whose names say none.
var english = &Language{
	Code: "en", Name: "English", Start: "Start page in English",
	Skip: "Skip to the text", Pages: "Pages", Contents: "On this page", Files: "Files of this example", Source: "Source:",
	Group: map[string]string{
		groupStart: "Start", groupGuides: "Guides", groupKinds: "Kinds", groupPolicies: "Policies",
		groupReference: "Reference", groupDecisions: "Decision points", groupExamples: "Examples", groupRules: "Rules",
	},
	Search: SearchLabels{
		Label: "Search", Loading: "Reading the index…", None: "Nothing was found.", Some: "{n} found.",
		First: "{n} found; these are the first {m}.", Failed: "The index of the search could not be read.",
	},
}

var chinese = &Language{
	Code: "zh-CN", Suffix: ".zh-CN", Name: "简体中文", Start: "中文首页", Foreign: "英文",
	Skip: "跳到正文", Pages: "全部页面", Contents: "本页内容", Files: "此示例的文件", Source: "源文件：",
	Group: map[string]string{
		groupStart: "入门", groupGuides: "指南", groupKinds: "资源", groupPolicies: "策略",
		groupReference: "参考", groupDecisions: "决策点", groupExamples: "示例", groupRules: "规则",
	},
	Search: SearchLabels{
		Label: "搜索", Loading: "正在读取索引…", None: "没有找到。", Some: "找到 {n} 处。",
		First: "找到 {n} 处，以下是前 {m} 处。", Failed: "无法读取搜索索引。",
	},
}

// splitLanguage takes the language out of the path of a page: what is left names it in any language.
func splitLanguage(name string) (string, *Language) {
	stem := strings.TrimSuffix(name, ".md")
	if plain, ok := strings.CutSuffix(stem, chinese.Suffix); ok {
		return plain + ".md", chinese
	}
	return name, english
}

// pathIn is the path of the same page in another language.
func (p *Page) pathIn(lang *Language) string {
	return strings.TrimSuffix(p.name, ".md") + lang.Suffix + ".md"
}
