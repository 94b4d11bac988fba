// SPDX-License-Identifier: Apache-2.0
// The texts of the page. What rules and controllers say is shown as they say it, in any language.

export const languages = { en: "English", zh: "中文" };

const catalogs = {
  en: {
    skip: "Skip to the content", pages: "Pages", language: "Language", theme: "Theme", "theme-system": "System", "theme-light": "Light", "theme-dark": "Dark",
    workloads: "Workloads", decisions: "Decisions", policies: "Policies", budgets: "Budgets",
    disconnected: "Not connected to regatta dashboard; trying again", loading: "Loading", problem: "Not shown: {0}", none: "There are none here.",
    search: "Search", namespace: "Namespace", kind: "Kind", state: "State", name: "Name", all: "all", message: "Message", reason: "Reason", age: "Age", rule: "Rule",
    progress: "Updated and available", available: "Available", revision: "Revision", notes: "Notes", "cluster-scoped": "(cluster)",
    shown: "{0} of {1} shown", "show-all": "Show all {0}",
    complete: "complete", updating: "updating", held: "held", paused: "paused", late: "deadline exceeded", failing: "failing", manual: "needs an action",
    unseen: "not observed yet", unreadable: "unreadable", gone: "This workload was deleted.",
    pods: "Pods", "of-pods": "{0} of {1} pods updated and available, {2} pods available",
    "what-decided": "What was decided", "what-would-change": "What would change it?", "asking": "Asking", "no-answer": "There is no answer: {0}",
    until: "May change by itself at {0}", place: "{0}, bundle {1}", fallback: "No decision was made ({0}: {1}). The fallback applies.", "decided-at": "Decided at {0} with policies {1}",
    "now-holds": "These rules hold. All of them would have to become false:", "almost-holds": "These rules would hold with one more condition:", "nothing-near": "No rule with conditions that facts could change takes part.",
    "group-by": "Group by", "by-none": "nothing", "by-state": "state", "by-zone": "zone", "by-node": "node", "by-wave": "wave of updates", "by-revision": "revision", "by-namespace": "namespace", "by-label": "label {0}",
    wave: "Wave {0}", "not-updated": "Not updated yet", unknown: "(none)",
    "pod-keys": "Arrow keys move between pods; Enter shows a pod.", "choose-pod": "Choose a pod to see what was decided about it.",
    node: "Node", zone: "Zone", "updated-at": "Updated at", "ready-at": "Ready since", "container-problem": "Container",
    "pod-UpToDate": "up to date", "pod-Updating": "updating", "pod-Moved": "update started", "pod-Held": "held", "pod-Waiting": "waiting", "pod-Hooked": "in a lifecycle hook", "pod-Deleting": "being deleted", "pod-NotReady": "not ready", "pod-Lacking": "lacks a sidecar", "pod-Ready": "ready", "pod-Outdated": "ready, of an older revision", "pod-Placed": "placed", "pod-Running": "running", "pod-Paused": "paused", "pod-Ended": "ended", "pod-Forgotten": "not remembered", "pod-Refused": "refused", "pod-Exempted": "let through as an exception", "pod-other": "{0}",
    timeline: "Timeline", "timeline-about": "Pods of the newest revision over time: updated (line), ready (filled)", "timeline-empty": "No pod is known to have the newest revision.",
    events: "Events", time: "Time", count: "Count", type: "Type", warning: "Warning", normal: "Normal",
    commands: "Commands", copy: "Copy", copied: "Copied", blocked: "It refuses now: {0}",
    "command-status": "Wait for the rollout", "command-stages": "Show each stage", "command-history": "List revisions", "command-pause": "Stop the rollout", "command-resume": "Let the rollout go on", "command-undo": "Show what going back would do", "command-why": "Explain in the terminal", "command-promote": "Promote", "command-rollback": "Go back to the revision before",
    point: "Decision point", subject: "About", outcome: "Outcome", "only-reasons": "Only holds and denials", took: "Took", shadow: "shadow of {0}",
    mode: "Mode", ready: "ready", "not-ready": "not ready", stages: "Stages of the gate", active: "Enforced", candidate: "Tried", withheld: "Withheld after a rollback", history: "Before", replicas: "Managers", "in-namespaces": "in {0}", nothing: "nothing",
    "shadow-compared": "Shadow: {0} decisions compared", stricter: "{0} stricter", looser: "{0} looser", changed: "{0} changed otherwise", errors: "{0} failed", skipped: "{0} skipped", enforced: "Enforced", instead: "The shadow would", times: "Times",
    allowed: "May become unavailable", "is-available": "Available", desired: "Must stay available", total: "Pods", uses: "Used by", "use-disruption": "deletion or eviction", "use-update": "update in place", unprotected: "protects nothing: 0 must stay available",
  },
  zh: {
    skip: "跳到正文", pages: "页面", language: "语言", theme: "主题", "theme-system": "跟随系统", "theme-light": "浅色", "theme-dark": "深色",
    workloads: "工作负载", decisions: "决策", policies: "策略", budgets: "预算",
    disconnected: "与 regatta dashboard 的连接已断开，正在重试", loading: "正在加载", problem: "无法显示：{0}", none: "这里没有对象。",
    search: "搜索", namespace: "命名空间", kind: "类型", state: "状态", name: "名称", all: "全部", message: "消息", reason: "原因", age: "存在时间", rule: "规则",
    progress: "已更新且可用", available: "可用", revision: "修订版本", notes: "说明", "cluster-scoped": "（集群）",
    shown: "显示 {1} 个中的 {0} 个", "show-all": "显示全部 {0} 个",
    complete: "已完成", updating: "更新中", held: "已暂缓", paused: "已暂停", late: "超过期限", failing: "出错", manual: "需要操作",
    unseen: "尚未被控制器处理", unreadable: "无法读取", gone: "该工作负载已被删除。",
    pods: "Pod", "of-pods": "{1} 个 Pod 中有 {0} 个已更新且可用，共 {2} 个 Pod 可用",
    "what-decided": "决策结果", "what-would-change": "怎样才会改变？", "asking": "正在询问", "no-answer": "没有答案：{0}",
    until: "可能在 {0} 自行改变", place: "{0}，策略包 {1}", fallback: "没有作出决策（{0}：{1}），采用回退值。", "decided-at": "决策于 {0}，策略的修订版本为 {1}",
    "now-holds": "以下规则暂缓了更新，它们必须全部不再成立：", "almost-holds": "以下规则再满足一个条件就会暂缓更新：", "nothing-near": "没有可由事实改变条件的规则参与。",
    "group-by": "分组", "by-none": "不分组", "by-state": "状态", "by-zone": "可用区", "by-node": "节点", "by-wave": "更新批次", "by-revision": "修订版本", "by-namespace": "命名空间", "by-label": "标签 {0}",
    wave: "第 {0} 批", "not-updated": "尚未更新", unknown: "（无）",
    "pod-keys": "方向键在 Pod 之间移动，回车键显示 Pod。", "choose-pod": "选择一个 Pod，查看对它的决策。",
    node: "节点", zone: "可用区", "updated-at": "更新时间", "ready-at": "就绪时间", "container-problem": "容器",
    "pod-UpToDate": "已是最新", "pod-Updating": "更新中", "pod-Moved": "已开始更新", "pod-Held": "已暂缓", "pod-Waiting": "等待中", "pod-Hooked": "处于生命周期钩子", "pod-Deleting": "正在删除", "pod-NotReady": "未就绪", "pod-Lacking": "缺少 Sidecar", "pod-Ready": "就绪", "pod-Outdated": "就绪，旧修订版本", "pod-Placed": "已分配", "pod-Running": "运行中", "pod-Paused": "已暂停", "pod-Ended": "已结束", "pod-Forgotten": "未记住", "pod-Refused": "被拒绝", "pod-Exempted": "作为例外放行", "pod-other": "{0}",
    timeline: "时间线", "timeline-about": "最新修订版本的 Pod 数量随时间的变化：已更新（折线），已就绪（填充）", "timeline-empty": "还没有已知处于最新修订版本的 Pod。",
    events: "事件", time: "时间", count: "次数", type: "类别", warning: "警告", normal: "正常",
    commands: "命令", copy: "复制", copied: "已复制", blocked: "目前会拒绝：{0}",
    "command-status": "等待发布完成", "command-stages": "显示每个阶段", "command-history": "列出修订版本", "command-pause": "暂停发布", "command-resume": "继续发布", "command-undo": "预览回滚的结果", "command-why": "在终端中解释", "command-promote": "推进到下一模式", "command-rollback": "回到上一个修订版本",
    point: "决策点", subject: "对象", outcome: "结果", "only-reasons": "只看暂缓和拒绝", took: "耗时", shadow: "{0} 的影子决策",
    mode: "模式", ready: "就绪", "not-ready": "未就绪", stages: "准入阶段", active: "执行中", candidate: "试运行", withheld: "回滚后停用", history: "以前的修订版本", replicas: "管理器", "in-namespaces": "在 {0}", nothing: "无",
    "shadow-compared": "影子：比较了 {0} 个决策", stricter: "{0} 个更严格", looser: "{0} 个更宽松", changed: "{0} 个有其他变化", errors: "{0} 个失败", skipped: "{0} 个跳过", enforced: "实际决策", instead: "影子决策", times: "次数",
    allowed: "还可不可用", "is-available": "可用", desired: "必须保持可用", total: "Pod 总数", uses: "使用者", "use-disruption": "删除或驱逐", "use-update": "原地升级", unprotected: "没有保护：必须保持可用的数量为 0",
  },
};

/** Returns the language of the page: the one that was chosen, or the first one of the browser that the page has. */
export function language() {
  const saved = localStorage.getItem("language");
  if (saved in languages) return saved;
  const preferred = navigator.languages.map((tag) => tag.split("-")[0]);
  return preferred.find((tag) => tag in languages) ?? "en";
}

export function setLanguage(tag) {
  if (tag in languages) localStorage.setItem("language", tag);
}

/** Returns a text in the language of the page, with values in the places {0}, {1} and so on. */
export function text(key, ...values) {
  return catalogs[language()][key].replace(/\{(\d)\}/g, (_, i) => values[i]);
}

/** Returns a text if the page has it, or undefined. */
export function findText(key) {
  return catalogs[language()][key];
}

/** Returns a time of the clock of the browser, such as 2026-11-29 14:03:05; without the date if it is today. */
export function formatTime(time) {
  const at = new Date(time);
  const [date, clock] = at.toLocaleString("sv-SE").split(" ");
  return at.toDateString() === new Date().toDateString() ? clock : `${date} ${clock}`;
}

/** Returns the time since then as kubectl writes it, such as 3d or 12m. */
export function formatAge(since) {
  const seconds = Math.max(0, Math.floor((Date.now() - since) / 1000));
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["m", 60]]) {
    if (seconds >= 2 * length) return `${Math.floor(seconds / length)}${unit}`;
  }
  return `${seconds}s`;
}
