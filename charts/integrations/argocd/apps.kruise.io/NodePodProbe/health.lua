return judgeController(obj)
  or newHealth("Healthy", "Pods with probes: " .. #readTable(obj, "spec", "podProbes") .. ", with results: "
    .. #readTable(obj, "status", "podProbeStatuses") .. ".")
