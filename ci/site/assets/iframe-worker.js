// Search of the site when it is read as files: browsers start no worker from file://, so the worker's
// script runs in a hidden frame instead, behind the part of Worker's interface that the theme uses.
if (window.location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html><title>search</title>";
      this.ready = new Promise((loaded) => (this.frame.onload = loaded)).then(() => this.start(url));
      document.documentElement.appendChild(this.frame);
    }
    start(url) {
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) =>
        setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
      const script = inside.document.createElement("script");
      script.src = new URL(url, document.baseURI).href;
      return new Promise((done, failed) => {
        script.onload = done;
        script.onerror = failed;
        inside.document.body.appendChild(script);
      });
    }
    postMessage(data) {
      this.ready.then(() =>
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
      );
    }
    terminate() {
      this.frame.remove();
    }
  };
}
