// What a reload must not lose: kept in this tab's session storage, and nowhere else.

const KEY = "privcov.state";

const FRESH = {
  draft: null,
  data: "",
  schema: "",
  rows: "1000",
  loss: { kind: "pure", epsilon: "1", delta: "0.000001", rho: "0.1", neighbours: "replace-one" },
  question: { word: "mean", one: "", other: "" },
  purpose: "covariance",
  frame: "declared",
  cut: "told",
  focus: "",
  by: "",
  rest: "",
  share: "0",
  sizes: "",
  against: "",
  formula: "",
  ledger: "",
  output: "",
  mechanism: "auto",
  request: "",
  receipt: null,
  release: "",
  stratum: "",
  fit: "",
  conservative: false,
};

function kept() {
  try {
    return { ...FRESH, ...JSON.parse(sessionStorage.getItem(KEY) || "{}") };
  } catch {
    return { ...FRESH };
  }
}

export const state = kept();

export function keep() {
  sessionStorage.setItem(KEY, JSON.stringify(state));
}

// What goes with the loss in every question, in the words of the command line.
export function choice() {
  const { purpose, frame, cut, focus, by, rest, share } = state;
  return { purpose, frame, cut, focus, by, rest, share };
}

export function loss() {
  const { kind, neighbours, epsilon, delta, rho } = state.loss;
  return { kind, neighbours, epsilon, delta, rho };
}

// A name for one press of the button: whatever is sent twice under it is paid once.
export function request() {
  if (!state.request) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    state.request = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    keep();
  }
  return state.request;
}
