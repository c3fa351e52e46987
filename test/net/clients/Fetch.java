// SPDX-License-Identifier: Apache-2.0

// Fetches an address with one of Java's two clients: Fetch new|old URL [PROXY-PORT].
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

public class Fetch {
	static String byNew(String url, InetSocketAddress proxy) throws Exception {
		HttpClient.Builder builder = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(10));
		if (proxy != null)
			builder.proxy(ProxySelector.of(proxy));
		HttpResponse<String> reply = builder.build().send(HttpRequest.newBuilder(URI.create(url)).build(),
				HttpResponse.BodyHandlers.ofString());
		if (reply.statusCode() != 200)
			throw new Exception("status " + reply.statusCode());
		return reply.body();
	}

	static String byOld(String url, InetSocketAddress proxy) throws Exception {
		Proxy way = proxy == null ? Proxy.NO_PROXY : new Proxy(Proxy.Type.HTTP, proxy);
		try (InputStream in = new URL(url).openConnection(way).getInputStream()) {
			return new String(in.readAllBytes());
		}
	}

	public static void main(String[] args) throws Exception {
		InetSocketAddress proxy = args.length > 2 ? new InetSocketAddress("127.0.0.1", Integer.parseInt(args[2])) : null;
		System.out.print(args[0].equals("new") ? byNew(args[1], proxy) : byOld(args[1], proxy));
	}
}
