"use strict";
// The token is in the fragment of the address, which browsers do not send to any server.
const token = new URLSearchParams(location.hash.slice(1)).get("token") || "";
const list = document.getElementById("messages");
const state = document.getElementById("state");
const text = document.getElementById("text");
const send = document.getElementById("send");
let socket = null;
let last = 0;
let pause = 500;
let own = "";

function show(name, content, kind) {
  const line = document.createElement("li");
  const origin = document.createElement("b");
  origin.textContent = name;
  line.append(origin, document.createTextNode(content));
  line.className = kind;
  const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  list.append(line);
  if (isAtEnd) list.scrollTop = list.scrollHeight;
}

function setReady(isReady, word) {
  text.disabled = send.disabled = !isReady;
  state.textContent = word;
}

function take(message) {
  if (message.type === "ready") {
    own = message.name;
    pause = 500;
    setReady(true, `connected as ${own}`);
  } else if (message.type === "message") {
    last = message.number;
    const kind = message.origin === own ? "own" : "";
    show(message.origin, message.text ?? "(bytes that are no text)", kind);
  } else if (message.type === "refused") {
    show("not sent", message.problem, "refused");
  }
}

function connect() {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  socket = new WebSocket(`${scheme}://${location.host}/socket`);
  socket.onopen = () => socket.send(JSON.stringify({ token, after: last }));
  socket.onmessage = (event) => take(JSON.parse(event.data));
  socket.onclose = (event) => {
    if (event.code === 4401) {
      setReady(false, "wrong token: open the address that the gateway printed");
      return;
    }
    setReady(false, "not connected");
    setTimeout(connect, pause);
    pause = Math.min(2 * pause, 10000);
  };
}

document.getElementById("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!text.value || send.disabled) return;
  socket.send(JSON.stringify({ text: text.value }));
  text.value = "";
});

connect();
