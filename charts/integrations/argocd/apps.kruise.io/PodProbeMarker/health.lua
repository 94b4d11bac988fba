return judgeObserved(obj) or newHealth("Healthy", "Probed pods: " .. readNumber(obj, "status", "matchedPods") .. ".")
