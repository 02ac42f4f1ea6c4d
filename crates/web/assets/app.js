// The pages of `narrows watch`.

import { start } from "./frame.js";
import * as overview from "./overview.js";
import * as target from "./target.js";
import * as run from "./run.js";
import * as compare from "./compare.js";

start([
  [/^\/$/, overview.show],
  [/^\/target\/([^/]+)$/, target.show],
  [/^\/path\/([^/]+)$/, target.showPath],
  [/^\/run\/([^/]+)$/, run.show],
  [/^\/compare$/, compare.show],
], ["sample", "event", "run", "alert"]);
