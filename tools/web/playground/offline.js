// SPDX-License-Identifier: BSD-3-Clause
// A service worker: the page's files are there without a network once they were loaded.

const KEPT = "weir-playground";

self.addEventListener("install", (event) => {
  const names = fetch("files.json").then((answer) => answer.json());
  event.waitUntil(Promise.all([caches.open(KEPT), names]).then(([cache, all]) => cache.addAll(all)));
  self.skipWaiting();
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

// The network's file if there is one, so that a new version is seen, else the one that is kept.
self.addEventListener("fetch", (event) => {
  if (new URL(event.request.url).origin !== location.origin || event.request.method !== "GET") return;
  event.respondWith(fetch(event.request).then(async (answer) => {
    if (answer.ok) (await caches.open(KEPT)).put(event.request, answer.clone());
    return answer;
  }).catch(() => caches.match(event.request, { ignoreSearch: true })));
});
